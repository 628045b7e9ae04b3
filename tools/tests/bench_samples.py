# SPDX-License-Identifier: GPL-2.0
"""What a guest's driver would say of a boot, for the tests of the comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rust_writeback import jobs, results


def fio_output(scenario: jobs.Scenario, mode: str, speed: float = 1.0) -> dict[str, Any]:
    """fio's json+ of a run as it was planned; speed divides every time."""
    quick = scenario.ios_per_job - scenario.ios_per_job // 10
    bins = {str(round(100_000 / speed)): quick, str(round(900_000 / speed)): scenario.ios_per_job - quick}
    write = {
        "io_bytes": scenario.ios_per_job * scenario.block,
        "total_ios": scenario.ios_per_job,
        "runtime": round(1000 / speed),
        "clat_ns": {"N": scenario.ios_per_job, "bins": bins},
    }
    job = {"jobname": scenario.name, "error": 0, "job options": {}, "usr_cpu": 1.0, "sys_cpu": 2.0, "write": write}
    variables = jobs.MODES[mode]
    return {
        "fio version": "fio-3.39",
        "global options": {"direct": variables["BENCH_DIRECT"], "uncached": variables["BENCH_UNCACHED"]},
        "jobs": [job] * scenario.jobs,
    }


def boot(core: str, steps: Sequence[results.Step], speed: float = 1.0) -> list[dict[str, Any]]:
    """All lines of one boot."""
    lines: list[dict[str, Any]] = [
        {
            "kind": "guest",
            "core": core,
            "kernel": "7.3.4 #1",
            "cmdline": f"rust_writeback.core={core}",
            "memory": 100 << 20,
            "cpus": 2,
        }
    ]
    for step in steps:
        peak = 700 if step.mode == "dontcache" else 0
        dirty = 0 if step.mode == "direct" else 1000
        lines.append(
            {
                "kind": "step",
                "scenario": step.scenario.name,
                "mode": step.mode,
                "status": 0,
                "fio": "note: both iodepth >= 1 and\n" + json.dumps(fio_output(step.scenario, step.mode, speed), indent=1),
                "samples": [[0.0, 0, 0, 0], [0.1, dirty, 20, peak]],
                "dontcache_rounds": {"rounds": peak and 3, "most_pages": peak},
                "counter_before": [0, 0],
                "counter_at_end": [0, 0],
                "counter_after": [0, 0],
                "cached_after": {"cache": 0 if step.mode == "dontcache" else 5000, "files": step.scenario.jobs},
                "sync_seconds": 0.1,
            }
        )
    lines.append({"kind": "end", "core": core})
    return lines
