# SPDX-License-Identifier: GPL-2.0
"""What a guest's driver would say of a boot, and guests that say it, for the tests of the comparison."""

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rust_writeback import paths
from rust_writeback.build import kernel
from rust_writeback.errors import Failure
from rust_writeback.vm import emulated
from rust_writeback.bench import catalogue, full, jobs, plots, results

LOADS = {load.name: load for load in catalogue.matrix()}

START = 1_767_225_600_000
"""When every load begins, in milliseconds of the epoch."""

HANDED_OVER, DURABLE = 1000, 1250
"""Milliseconds until the last request has returned, and until all of it is on the drive."""

SYNCS = 20
"""of each job that syncs on its way"""

COUNTERS = ("counter_before", "counter_at_end", "counter_after")


def steps(*names: str) -> list[catalogue.Load]:
    """A boot's loads with these names."""
    return catalogue.keeping([LOADS[name] for name in names])


def accept(lines: Sequence[results.Line], loads: Sequence[catalogue.Load], pair: int, variant: str) -> list[results.Measurement]:
    """The measurements of a boot, whose first problem is raised."""
    found, problems = results.sift(lines, loads, pair, variant)
    if problems:
        raise Failure(problems[0])
    return found


def fio_output(scenario: jobs.Scenario, mode: str, speed: float = 1.0) -> dict[str, Any]:
    """fio's json+ of a run as it was planned, or our own program's; speed divides every time."""
    found = []
    for section in scenario.sections:
        ios = section.ios_per_job or 500
        slow = ios // 10
        bins = {str(round(100_000 / speed)): ios - slow, str(round(900_000 / speed)): slow}
        size = section.bytes // section.jobs or ios * (section.smallest + section.block) // 2
        traffic = {"io_bytes": size, "total_ios": ios, "runtime": round(HANDED_OVER / speed), "lat_ns": {"bins": bins}}
        direct, uncached = section.mode(mode)
        job = {
            "jobname": section.name,
            "error": 0,
            "job options": {"direct": direct, "uncached": uncached},
            "read" if section.reads else "write": traffic,
            "job_start": START,
        }
        if not section.reads and (scenario.program or "fdatasync=" in scenario.text):
            job["sync"] = {"lat_ns": {"bins": {str(round(5_000_000 / speed)): SYNCS}}}
        if scenario.program:
            job["durable"] = (HANDED_OVER if section.reads else DURABLE) / speed
        found += [copy.deepcopy(job) for _ in range(section.jobs)]
    return {"jobs": found}


def clocks(speed: float = 1.0) -> tuple[float, float]:
    """When the sync of such a run began and when it ended, in milliseconds of the epoch."""
    return START + HANDED_OVER / speed, START + DURABLE / speed


def parse(document: dict[str, Any], scenario: jobs.Scenario, mode: str) -> list[jobs.Outcome]:
    """What the tools read in such an output, of a sync that came when it should."""
    return jobs.parse(json.dumps(document, indent=1), *clocks(), scenario, mode)


def files_of(section: jobs.Section) -> list[str]:
    """What the files of a section are called that stay."""
    if section.temporary:
        return []
    return section.names if section.filename else [f"{section.name}.{number}" for number in range(section.files)]


def boot(core: str, loads: Sequence[catalogue.Load], speed: float = 1.0) -> list[dict[str, Any]]:
    """All lines of one boot."""
    lines: list[dict[str, Any]] = [{"kind": "guest", "core": core, "kernel": "7.3.4 #1", "memory": 100 << 20, "cpus": 2}]
    sync_began, durable_at = clocks(speed)
    for load in loads:
        scenario, mode = load.scenario, load.mode
        uncached = any(section.uncached(mode) for section in scenario.sections)
        peak = 700 if uncached and scenario.written else 0
        cached = 0 if uncached or mode == "direct" else 50000
        used = {"context_switches": 900, "worker_seconds": 0.4, "device_read": 0}
        used |= {"device_flushes": 3, "device_written": scenario.written, "device_writes": scenario.written >> 18}
        pages = dict.fromkeys((name for section in scenario.sections for name in files_of(section)), 0)
        pages[next(iter(pages))] = cached // 10
        line = {"kind": "step", "name": load.name, "server_threads": 0, "status": 0}
        line |= {
            "fio": "note: both iodepth >= 1 and\n" + json.dumps(fio_output(scenario, load.own_mode, speed), indent=1),
            "sync_began_ms": sync_began,
            "durable_at_ms": durable_at,
            "samples_began_ms": START,
            "samples": [
                [0.0, 0, 0, 0, 9000, 0, 0, 0],
                [0.8 / speed, 0 if mode == "direct" else 1000, 20, peak, 9500, 0, 40 << 20, 40 << 20],
            ],
            "dontcache_round": peak,
            "background_pages": (75 << 20) // results.PAGE if load.mem == catalogue.ENOUGH else 3000,
            **dict.fromkeys(COUNTERS, 0),
            "cached_at_end": {"all": cached},
            "cached_after": pages,
            "used": used,
            "used_with_sync": used,
        }
        lines.append(line)
    return [*lines, {"kind": "end", "core": core}]


def round_on_hardware(loads: Sequence[catalogue.Load]) -> list[dict[str, Any]]:
    """All lines of a round on a machine whose kernel has no core of ours, as any user may run it."""
    lines = boot("kernel", loads)
    for line, load in zip(lines[1:-1], loads, strict=True):
        line |= dict.fromkeys(["dontcache_round", *COUNTERS])
        for section in load.scenario.sections:
            kept = section.mode(load.mode) == ("0", "0")
            line["cached_after"] |= dict.fromkeys(files_of(section), section.file_bytes // results.PAGE * kept)
        del line["used_with_sync"]["worker_seconds"]
    return lines


class Guests:
    """Boots that are made up, and which of them die."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder
        self.booted: list[tuple[str, str, int]] = []
        self.plans: list[dict[str, Any]] = []
        self.dies: dict[int, tuple[str, int]] = {}
        """for a boot, what dies in it, and how often: QEMU, after which it is tried anew, or the guest"""
        self.interrupted = 0
        """the boot before which somebody presses Ctrl-C once"""
        self.end: dict[str, Any] = {}
        """how a boot ends otherwise than well"""
        (folder / "bzImage").write_text("a kernel")
        monkeypatch.setattr(emulated, "run", self.run)
        monkeypatch.setattr(jobs, "version", lambda: "fio-3.39")
        monkeypatch.setattr(kernel, "ensure", lambda: None)
        monkeypatch.setattr(paths, "PROJECT", folder)
        monkeypatch.setattr(paths, "BUILD", folder)
        monkeypatch.setattr(paths, "BZIMAGE", folder / "bzImage")
        monkeypatch.setattr(plots, "draw", lambda *_: {})

    def run(self, options: Any, command: list[str], stdout: Callable[[bytes], None], again: Any = None) -> emulated.VmResult:
        """In place of vm.run()."""
        plan, log = json.loads(command[-1]), self.folder / "log"
        place = plan["file_system"]
        if len(self.booted) + 1 == self.interrupted:
            self.interrupted = 0
            raise KeyboardInterrupt
        self.booted.append((options.core, place, len(plan["steps"])))
        self.plans.append(plan)
        lines = [json.dumps(line) + "\n" for line in boot(options.core, [LOADS[step["name"]] for step in plan["steps"]])]
        kind, deaths = self.dies.get(len(self.booted), ("", 0))
        for number in range(deaths):
            stdout("".join([*lines[:2], '{"kind": "st']).encode())
            failure = emulated.VmFailure(kind, f"{kind} died", log, "Aborted")
            if kind != "qemu" or number + 1 == emulated.TRIES:
                raise failure
            again(failure)
        stdout("".join(lines).encode())
        done = emulated.VmResult(0, b"", b"", log, "tcg", ["qemu"], "10.0", options.core, "7.3.4", deaths=deaths)
        return replace(done, **self.end)

    def cores(self) -> list[str]:
        """The cores in the order in which they were booted."""
        return [core for core, _, _ in self.booted]

    def bench(self, *arguments: str) -> int:
        """Run the benchmark; the place of its report is always the same."""
        return full.main(["--report", str(self.folder / "bench"), *arguments])

    def document(self, name: str = "bench") -> Any:
        """What the report holds."""
        return json.loads((self.folder / name / "results.json").read_text())
