# SPDX-License-Identifier: GPL-2.0
"""make price CPUS=4: cache lines that move between CPUs, DONTCACHE beside buffered writes, C beside Rust.

A guest has a writer on each CPU. A plugin of QEMU records which CPU holds which line of the kernel's memory. It
counts an access as a transfer if the CPU has to fetch a line that another CPU modified, or has to invalidate
it elsewhere. The counts vary, so each load is repeated.
"""

from __future__ import annotations

import fnmatch
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import paths, tables
from ..build import kernel
from ..build.variants import MEASURED
from ..check.lines import fingerprint
from ..errors import Failure
from ..progress import Bar
from ..steps import only_one, write_whole
from ..vm import emulated, images, machine
from ..vm.options import CORES
from . import boots, price, transfers_page
from .cache_lines import Key, Line, Symbols, Transfers, by_function, by_key, groups, lines, merged, regions

CPUS = (2, 4, 8)
PLACES = ("separate", "one", "device")
MODES = ("buffered", "early", "dontcache")
"""Early is buffered, too, but the flusher writes beside the writers, as it does for DONTCACHE."""
REPETITIONS = 5
"""As often as each load is counted. It runs once before that: the first run is the first to touch many lines."""
SIZE, BYTES = 4096, 32 << 20
"""Of a write, and of what all writers write."""
MEMORY = "1700M"
HOT = 0.5
"""Handovers per write from which on a line counts as written by several CPUs once per write. With two writers that
alternate at random a line that each write modifies is handed over at every second write."""
SHOWN = 3
"""Functions that are named with a line."""
SMALLEST = 0.005
"""Transfers per write from which on a function or a group of lines is kept."""

SKIPPED = (
    *("rep_movs_alternative", "rep_stos_alternative", "memcpy*", "__memcpy", "memmove*", "__memmove"),
    *("copy_page", "clear_page", "__clear_pages_unrolled"),
    *("ktime_*", "timekeeping_*", "__timekeeping_*", "tick_*", "get_jiffies_update"),
    *("update_vsyscall", "update_wall_time", "update_process_times", "calc_global_load*", "calc_load_*", "sched_tick"),
    *("task_tick_*", "account_*_time", "run_posix_cpu_timers", "rcu_sched_clock_irq", "hrtimer_*", "__hrtimer_*"),
    *("timerqueue_*", "tmigr_*", "__tmigr_*", "clockevents_*", "watchdog", "native_apic_*", "default_send_IPI_*"),
)
"""Functions whose accesses do not count: they copy data, run by the clock, or access the registers of the APIC. The
guest is slow: ticks come about as often as writes, and would hide all else."""


@dataclass
class Run:
    """One repetition of a load: its writes, and the lines that were transferred."""

    writes: int
    sums: dict[Key, Line]
    hottest: Line
    hot: int
    """Lines of at least HOT handovers per write."""

    @classmethod
    def of(cls, writes: int, found: Sequence[Line]) -> Run:
        """What is kept of the lines of a region."""
        hottest = max(found, key=lambda line: line.transfers)
        return cls(writes, by_key(found), hottest, sum(line.handovers >= HOT * writes for line in found))

    @property
    def transfers(self) -> float:
        """Per write."""
        return sum(line.transfers for line in self.sums.values()) / self.writes


Runs = dict[tuple[str, str], list[Run]]
"""By place and mode, in the order of the repetitions."""


def skipped(system_map: str) -> list[str]:
    """The functions of this kernel that SKIPPED names."""
    functions = {name for _, kind, name in (line.split(maxsplit=2) for line in system_map.splitlines()) if kind in "tTwW"}
    matched = {pattern: fnmatch.filter(functions, pattern) for pattern in SKIPPED}
    missing = [pattern for pattern, names in matched.items() if not names]
    if missing:
        raise Failure(f"the kernel has no function {', '.join(missing)}; correct SKIPPED in {Path(__file__).name}")
    return sorted({name for names in matched.values() for name in names})


def accept(core: str, said: Sequence[str], counted: Iterable[list[Transfers]], symbols: Symbols) -> Runs:
    """The runs of a boot without the first of each load, if the guest and the plugin prove what they measured."""
    guest, *results = [json.loads(line) for line in said] or [{"core": "unknown"}]
    if guest["core"] != core:
        raise Failure(f"the active core was {guest['core']}, not {core}; nothing is reported")
    loads = [(place, mode) for _ in range(REPETITIONS + 1) for place in PLACES for mode in MODES]
    if [(result["place"], result["mode"]) for result in results] != loads:
        raise Failure(f"of {len(loads)} loads the guest ran {len(results)}; nothing is reported")
    found: Runs = {}
    number = 0
    for number, region in enumerate(counted, 1):
        if number <= len(results):
            run = _run(core, results[number - 1], lines(region, symbols))
            if results[number - 1]["repetition"]:
                found.setdefault(loads[number - 1], []).append(run)
    if number != len(loads):
        raise Failure(f"of {len(loads)} loads the plugin counted {number}; nothing is reported")
    return found


def _run(core: str, result: Mapping[str, Any], found: Sequence[Line]) -> Run:
    """One run, if it is what was asked for."""
    place, mode, writes, pages = (result[name] for name in ("place", "mode", "writes", "pages"))
    load = f"{place}, {mode}"
    if writes != BYTES // SIZE:
        raise Failure(f"{load}: the writers wrote {writes} times, not {BYTES // SIZE}; nothing is reported")
    # The C core does not drop all that it should.
    cached = pages * 4096 > writes * SIZE // 8
    if cached != (mode != "dontcache") and (core, mode) != ("c", "dontcache"):
        raise Failure(f"{load}: {pages} pages were cached in the end; nothing is reported")
    if not found:
        raise Failure(f"{load}: the plugin counted no transfer; nothing is reported")
    return Run.of(writes, found)


def prove(result: emulated.VmResult) -> None:
    """Refuse an accelerator that the plugin cannot count with."""
    if result.accel != "tcg" or "tcg,thread=multi" not in result.qemu_command:
        raise Failure(f"the accelerator was {result.accel}, not tcg with a thread for each CPU; nothing is reported")


@dataclass(frozen=True)
class Kernel:
    """A copy of the measured kernel and its symbols: a build that others start meanwhile changes neither."""

    image: Path
    system_map: Path

    @classmethod
    def copied(cls, folder: Path) -> Kernel:
        """The kernel that is up to date."""
        kernel.ensure()
        with only_one("kernel"):
            return cls(
                Path(shutil.copy2(MEASURED.image, folder / "bzImage")),
                Path(shutil.copy2(MEASURED.out / "System.map", folder)),
            )


def run_core(core: str, cpus: int, measured: Kernel, bar: Bar) -> tuple[Runs, emulated.VmResult]:
    """Boot one core, and run the loads."""
    output = bytearray()

    def hear(data: bytes) -> None:
        output.extend(data)
        bar.advance(data.count(b"\n"))

    def again(_failure: emulated.VmFailure) -> None:
        bar.advance(-output.count(b"\n"))
        output.clear()

    plan: dict[str, Any] = {"cpus": cpus, "size": SIZE, "bytes": BYTES // cpus, "repetitions": REPETITIONS + 1}
    plan |= {"places": PLACES, "modes": MODES}
    system_map = measured.system_map.read_text()
    with tempfile.TemporaryDirectory(dir=paths.BUILD, prefix="transfers-") as folder:
        share = Path(folder)
        for file in (price.LOAD, price.DRIVER, price.DRIVER.with_name("transfers.py")):
            shutil.copy2(file, share)
        counts = share / "counts"
        plugin = f"{price.PLUGIN},lines=on,symbols={measured.system_map},out={counts},skip={'+'.join(skipped(system_map))}"
        options = emulated.VmOptions(
            core=core,
            smp=cpus,
            mem=MEMORY,
            nvme=None,
            share=share,
            append="nokaslr",
            accel="tcg",
            kernel=measured.image,
            devices=("-plugin", plugin),
        )
        command = ["python3", "-B", "/share/transfers.py", json.dumps(plan)]
        result = emulated.run(options, command, hear, again=again)
        if result.status:
            words = " ".join(result.stderr.decode(errors="replace").split())[-300:]
            raise Failure(f"the loads of the {core} core failed: {words or f'status {result.status}'}")
        prove(result)
        with counts.open() as text:
            said = output.decode().splitlines()
            return accept(core, said, regions(text), Symbols(system_map)), result


def _functions(line: Line, called: Mapping[str, str]) -> list[str]:
    """The functions that transfer a line most."""
    return [called.get(name, name) for name, _ in line.functions.most_common(SHOWN)]


def _hottest(runs: Sequence[Run], called: Mapping[str, str]) -> dict[str, Any]:
    """The line with the most transfers of each repetition, in the mean."""
    total = Line(runs[0].hottest.kind, number=0)
    for run in runs:
        total.add(run.hottest)
    writes = sum(run.writes for run in runs)
    return {
        "kind": total.kind,
        "functions": _functions(total, called),
        "transfers": total.transfers / writes,
        "handovers": total.handovers / writes,
    }


def describe(runs: Runs) -> dict[str, Any]:
    """All figures of a core, per write: of each load, and of the functions and lines in each mode."""
    names = {name for part in runs.values() for run in part for name in by_function(run.sums)}
    called = price.demangled(sorted(name for name in names if name.startswith("_R")))
    found: dict[str, Any] = {}
    for place in PLACES:
        of_place = [runs[place, mode] for mode in MODES]
        group_of = groups([run.sums for part in of_place for run in part])
        functions: dict[str, list[float]] = {}
        sums: dict[Key, list[Line]] = {}
        writes = sum(run.writes for run in of_place[0])
        for number, part in enumerate(of_place):
            for run in part:
                for name, count in by_function(run.sums).items():
                    functions.setdefault(called.get(name, name), [0.0] * len(MODES))[number] += count / writes
                for key, line in merged(run.sums, group_of).items():
                    sums.setdefault(key, [Line(line.kind, number=0) for _ in MODES])[number].add(line)
        alike: list[dict[str, Any]] = []
        for of_modes in sums.values():
            total = Line(of_modes[0].kind, number=0)
            for line in of_modes:
                total.add(line)
            alike.append(
                {
                    "kind": total.kind,
                    "functions": _functions(total, called),
                    "transfers": [line.transfers / writes for line in of_modes],
                    "handovers": [line.handovers / writes for line in of_modes],
                    "lines": [line.number / len(part) for line, part in zip(of_modes, of_place, strict=True)],
                }
            )
        found[place] = {
            "loads": {
                mode: {
                    "transfers": [run.transfers for run in part],
                    "hot": [run.hot for run in part],
                    "hottest": _hottest(part, called),
                }
                for mode, part in zip(MODES, of_place, strict=True)
            },
            "functions": {name: rates for name, rates in sorted(functions.items()) if max(rates) >= SMALLEST},
            "lines": [group for group in alike if max(group["transfers"]) >= SMALLEST],
        }
    return found


def main(cpus: int) -> int:
    """Count on both cores, print, write build/price/transfers-CPUS.json and the committed page."""
    if cpus not in CPUS:
        raise Failure("CPUS is the number of CPUs of the guest; give 2, 4 or 8", 2)
    machine.polite()
    price.ensure_plugin()
    images.ensure_program(price.LOAD_SOURCE, price.LOAD)
    setup: dict[str, Any] = {"date": boots.now(), "command": f"make price CPUS={cpus}"}
    setup |= {"revision": boots.revision(), "code": fingerprint()}
    setup |= {"cpus": cpus, "size": SIZE, "bytes": BYTES, "repetitions": REPETITIONS, "hot": HOT, "skipped": SKIPPED}
    cores = {}
    with tempfile.TemporaryDirectory(dir=paths.BUILD, prefix="transfers-") as folder:
        measured = Kernel.copied(Path(folder))
        with Bar("counting", len(CORES) * (1 + (REPETITIONS + 1) * len(PLACES) * len(MODES))) as bar:
            for core in reversed(CORES):
                runs, result = run_core(core, cpus, measured, bar)
                cores[core] = describe(runs)
                setup |= {"kernel": result.kernel, "qemu": result.qemu_version, "accelerator": result.accel}
                setup[f"qemu_command_{core}"] = result.qemu_command
    document = {"format": 1, "unit": "transfers of cache lines per write", "setup": setup, "cores": cores}
    write_whole(transfers_page.result(cpus), json.dumps(document, indent=1) + "\n")
    tables.show(transfers_page.page([document]))
    transfers_page.write()
    return 0
