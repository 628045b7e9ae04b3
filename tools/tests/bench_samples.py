# SPDX-License-Identifier: GPL-2.0
"""What a guest's driver would say of a boot, for the tests of the comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rust_writeback.bench import jobs, results
from rust_writeback.bench.variants import Variant


def fio_output(scenario: jobs.Scenario, mode: str, speed: float = 1.0) -> dict[str, Any]:
    """fio's json+ of a run as it was planned; speed divides every time."""
    found = []
    for section in scenario.sections:
        ios = section.ios_per_job or 500
        quick = ios - ios // 10
        bins = {str(round(100_000 / speed)): quick, str(round(900_000 / speed)): ios - quick}
        traffic = {
            "io_bytes": ios * section.block,
            "total_ios": ios,
            "runtime": round(1000 / speed),
            "clat_ns": {"N": ios, "bins": bins},
        }
        nothing = {"io_bytes": 0, "total_ios": 0, "runtime": 0, "clat_ns": {"N": 0}}
        direct, uncached = section.mode(mode)
        job = {
            "jobname": section.name,
            "error": 0,
            "job options": {"direct": direct, "uncached": uncached},
            "usr_cpu": 1.0,
            "sys_cpu": 2.0,
            "read": traffic if section.reads else nothing,
            "write": nothing if section.reads else traffic,
        }
        found += [job] * section.jobs
    return {"fio version": "fio-3.39", "global options": {}, "jobs": found}


def boot(variant: str, steps: Sequence[results.Step], speed: float = 1.0) -> list[dict[str, Any]]:
    """All lines of one boot."""
    core, _, policy = variant.partition("-")
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
        scenario, mode = step.load.scenario, step.load.mode
        uncached = any(section.uncached(mode) for section in scenario.sections)
        writes = not all(section.reads for section in scenario.sections)
        peak = 700 if uncached and writes else 0
        dirty = 0 if mode == "direct" else 1000
        cached = 0 if uncached or mode == "direct" else 50000
        used = {"context_switches": 900, "load_seconds": 0.6, "worker_seconds": 0.4, "device_read": 0}
        used |= {"device_written": scenario.written, "device_writes": scenario.written >> 18}
        lines.append(
            {
                "kind": "step",
                "scenario": scenario.name,
                "mode": mode,
                "policy": policy,
                "status": 0,
                "fio": "note: both iodepth >= 1 and\n" + json.dumps(fio_output(scenario, mode, speed), indent=1),
                "samples": [
                    [0.0, 0, 0, 0, 9000, 0, 0, 0, 0, 0],
                    [0.6, dirty, 20, peak, 9500, 0, 40 << 20, 540, 18_000, 240_000],
                ],
                "dontcache_rounds": {"rounds": peak and 3, "most_pages": peak},
                "counter_before": [0, 0],
                "counter_at_end": [0, 0],
                "counter_after": [0, 0],
                "cached_at_end": {"cache": cached, "files": scenario.files},
                "cached_after": {"cache": cached // 10, "files": scenario.files},
                "sync_seconds": 0.1,
                "used": used,
                "used_with_sync": used,
                "memory_group": {},
                "counts": {"bios": 800, "runs": {"batch_work": 400}, "latency_us": {"20": 790, "90": 10}, "dropped": {}},
            }
        )
    lines.append({"kind": "end", "core": core})
    return lines


def variant(name: str) -> Variant:
    """The variant of this name."""
    core, _, policy = name.partition("-")
    return Variant(core, policy or "kick")


def round_on_hardware(steps: Sequence[results.Step], speed: float = 1.0) -> list[dict[str, Any]]:
    """All lines of a round on a machine whose kernel has no core of ours, as any user may run it."""
    lines = boot("kernel", steps, speed)
    for line, step in zip(lines[1:-1], steps, strict=True):
        pages = {}
        for section in step.load.scenario.sections:
            kept = section.mode(step.load.mode) == ("0", "0")
            pages |= {name: section.file_bytes // results.PAGE if kept else 0 for name in section.names}
        line |= {"dontcache_rounds": None, "counter_before": None, "counter_at_end": None, "counter_after": None}
        line["cached_after"] = {"cache": sum(pages.values()), "files": len(pages), "by_file": pages}
        del line["used_with_sync"]["worker_seconds"]
    return lines
