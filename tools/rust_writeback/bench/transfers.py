# SPDX-License-Identifier: GPL-2.0
"""make price CPUS=4: cache lines that move between CPUs, DONTCACHE beside buffered writes, C beside Rust.

A guest has a writer on each CPU. A plugin of QEMU records which CPU holds which line of the kernel's memory. It
counts an access as a transfer if the CPU has to fetch a line that another CPU modified, or has to invalidate
it elsewhere. The counts vary, so each load is repeated.
"""

import fnmatch
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from .. import paths
from ..build import kernel
from ..build.variants import MEASURED
from ..errors import Failure
from ..progress import Bar
from ..steps import only_one
from ..tables import markdown, show
from ..vm import emulated, images, machine
from ..vm.options import CORES
from . import boots, pages, price, stats
from .contenders import title

CPUS = (2, 4, 8)
MIB = 1 << 20
MOST = 15
"""Functions of a place."""
PLACES = {"separate": "a file each, xfs", "one": "one file, xfs", "device": "block device"}
MODES = {"buffered": "buffered", "early": "buffered, early", "dontcache": "DONTCACHE"}
"""Early is buffered, too, but the flusher writes beside the writers, as it does for DONTCACHE."""
REPETITIONS = 5
"""As often as each load is counted. It runs once before that: the first run is the first to touch many lines."""
SIZE, BYTES = 4096, 32 << 20
"""Of a write, and of what all writers write."""
WRITES = BYTES // SIZE
MEMORY = "1700M"
HOT = 0.5
"""Handovers per write from which on a line counts as written by several CPUs once per write. With two writers that
alternate at random a line that each write modifies is handed over at every second write."""

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
class Region:
    """What the plugin counted during a load, by function; and the number of hot lines."""

    transfers: Counter[str] = field(default_factory=Counter)
    handovers: Counter[str] = field(default_factory=Counter)
    hot: int = 0


Runs = dict[tuple[str, str], list[Region]]
"""By place and mode, in the order of the repetitions."""


def regions(text: Iterable[str]) -> Iterator[Region]:
    """What the plugin counted between the marks, region by region."""
    found: Region | None = None
    lines: Counter[str] = Counter()
    for row in chain(text, ["region"]):
        if row.rstrip() == "region":
            if found:
                found.hot = sum(count >= HOT * WRITES for count in lines.values())
                yield found
            found, lines = Region(), Counter()
            continue
        count, handovers, function, address = row.split()
        assert found
        found.transfers[function] += int(count)
        found.handovers[function] += int(handovers)
        lines[address] += int(handovers)


def skipped(system_map: str) -> list[str]:
    """The functions of this kernel that SKIPPED names."""
    functions = {name for _, kind, name in (line.split(maxsplit=2) for line in system_map.splitlines()) if kind in "tTwW"}
    matched = {pattern: fnmatch.filter(functions, pattern) for pattern in SKIPPED}
    missing = [pattern for pattern, names in matched.items() if not names]
    if missing:
        raise Failure(f"the kernel has no function {', '.join(missing)}; correct SKIPPED in {Path(__file__).name}")
    return sorted({name for names in matched.values() for name in names})


def accept(core: str, said: Sequence[str], counted: Sequence[Region]) -> Runs:
    """The runs of a boot without the first of each load, if the guest and the plugin prove what they measured."""
    loads = [{"place": place, "mode": mode} for _ in range(REPETITIONS + 1) for place in PLACES for mode in MODES]
    found: Runs = {}
    for result, region in zip(price.whole(core, loads, said, len(counted))[1:], counted, strict=True):
        place, mode, writes, pages = (result[key] for key in ("place", "mode", "writes", "pages"))
        if writes != WRITES:
            raise Failure(f"{place}, {mode}: the writers wrote {writes} times, not {WRITES}; nothing is reported")
        # The C core does not drop all that it should.
        cached = pages * 4096 > BYTES // 8
        if cached != (mode != "dontcache") and (core, mode) != ("c", "dontcache"):
            raise Failure(f"{place}, {mode}: {pages} pages were cached in the end; nothing is reported")
        if not region.transfers:
            raise Failure(f"{place}, {mode}: the plugin counted no transfer; nothing is reported")
        if result["repetition"]:
            found.setdefault((place, mode), []).append(region)
    return found


def prove(result: emulated.VmResult) -> None:
    """Refuse an accelerator that the plugin cannot count with."""
    if result.accel != "tcg" or "tcg,thread=multi" not in result.qemu_command:
        raise Failure(f"the accelerator was {result.accel}, not tcg with a thread for each CPU; nothing is reported")


def run_core(core: str, cpus: int, folder: Path, bar: Bar) -> tuple[Runs, emulated.VmResult]:
    """Boot one core of the kernel in the folder, and run the loads."""
    plan: dict[str, Any] = {"cpus": cpus, "size": SIZE, "bytes": BYTES // cpus, "repetitions": REPETITIONS + 1}
    plan |= {"places": list(PLACES), "modes": list(MODES)}
    names, counts = folder / "System.map", folder / f"counts-{core}"
    skip = "+".join(skipped(names.read_text()))
    stream = boots.Stream(bar)
    options = emulated.VmOptions(
        core=core,
        smp=cpus,
        mem=MEMORY,
        nvme=None,
        share=folder,
        append="nokaslr",
        accel="tcg",
        kernel=folder / MEASURED.image.name,
        devices=("-plugin", f"{price.PLUGIN},lines=on,symbols={names},out={counts},skip={skip}"),
    )
    command = ["python3", "-B", "/share/transfers.py", json.dumps(plan)]
    result = emulated.run(options, command, stream, again=stream.restart)
    price.check(core, result)
    prove(result)
    with counts.open() as text:
        return accept(core, stream.data.decode().splitlines(), list(regions(text))), result


def describe(runs: Runs) -> dict[str, Any]:
    """Figures of a core, per write: of each load; and in each mode, of the functions with the most transfers more with
    DONTCACHE than when buffered writes are written as early."""
    names = {name for part in runs.values() for run in part for name in run.transfers}
    called = price.demangled(sorted(name for name in names if name.startswith("_R")))
    found: dict[str, Any] = {}
    for place in PLACES:
        parts = [runs[place, mode] for mode in MODES]
        transfers = [sum((run.transfers for run in part), Counter[str]()) for part in parts]
        handovers = [sum((run.handovers for run in part), Counter[str]()) for part in parts]
        rates = {
            name: [[of_mode[name] / WRITES / REPETITIONS for of_mode in figure] for figure in (transfers, handovers)]
            for name in sorted({name for of_mode in transfers for name in of_mode})
        }
        most = sorted(rates, key=lambda name: rates[name][0][1] - rates[name][0][2])[:MOST]
        found[place] = {
            "loads": {
                mode: {"transfers": [run.transfers.total() / WRITES for run in part], "hot": [run.hot for run in part]}
                for mode, part in zip(MODES, parts, strict=True)
            },
            "functions": {called.get(name, name): rates[name] for name in most},
        }
    return found


def _interval(values: Sequence[float], digits: int, base: Sequence[float] | None = None) -> str:
    """The mean, or that of the differences to a base, with its interval."""
    mean, half, _ = stats.interval([b - a for a, b in zip(base, values, strict=True)] if base else values)
    sign = "+" if base else ""
    return f"{mean:{sign}.{digits}f} ({mean - half:{sign}.{digits}f} to {mean + half:{sign}.{digits}f})"


def _totals(document: Mapping[str, Any]) -> str:
    per_mib = MIB / document["setup"]["size"]
    rows = []
    for place, text in PLACES.items():
        for core in CORES[::-1]:
            loads = document["cores"][core][place]["loads"]
            series = {mode: loads[mode]["transfers"] for mode in MODES}
            totals = [_interval([per_mib * value for value in values], 0) for values in series.values()]
            more = [_interval(series["dontcache"], 1, series[mode]) for mode in ("buffered", "early")]
            rows.append([text, title(core), *totals, *more, *(f"{fmean(loads[mode]['hot']):.1f}" for mode in MODES)])
    titles = ["writers to", "core", *(f"{name}, per MiB" for name in MODES.values())]
    titles += ["DONTCACHE - buffered, per write", "DONTCACHE - early, per write"]
    titles += [f"hot lines, {name}" for name in MODES.values()]
    return markdown(titles, rows, 2)


def _functions(document: Mapping[str, Any], place: str) -> str:
    rows = []
    for name, (transfers, handovers) in document["cores"]["rust"][place]["functions"].items():
        rates = [f"{rate:.2f}" for rate in transfers]
        rows.append([f"`{name}`", *rates, f"{transfers[2] - transfers[1]:+.2f}", *(f"{rate:.2f}" for rate in handovers[1:])])
    return markdown(["function", *MODES.values(), "DONTCACHE - early", "handovers, early", "handovers, DONTCACHE"], rows)


def page(document: Mapping[str, Any]) -> str:
    """transfers.md."""
    runs = document["runs"]
    setup = runs[-1]["setup"]
    return pages.render("transfers.md", setup=setup, documents=runs, places=PLACES, totals=_totals, functions=_functions)


def main(cpus: int) -> int:
    """Count on both cores, print, and put the figures in the place of those with as many CPUs."""
    from . import kept  # which needs what is rendered here

    if cpus not in CPUS:
        raise Failure("CPUS is the number of CPUs of the guest; give 2, 4 or 8", 2)
    machine.polite()
    price.ensure_plugin()
    images.ensure_program(price.LOAD_SOURCE, price.LOAD)
    kernel.ensure()
    cores = {}
    with tempfile.TemporaryDirectory(dir=paths.BUILD, prefix="transfers-") as name:
        folder = Path(name)
        for file in (price.LOAD, price.DRIVER, price.DRIVER.with_name("transfers.py")):
            shutil.copy2(file, folder)
        with only_one("kernel"):
            # A build that others start meanwhile changes neither.
            for file in (MEASURED.image, MEASURED.out / "System.map"):
                shutil.copy2(file, folder)
        with Bar("counting", len(CORES) * (1 + (REPETITIONS + 1) * len(PLACES) * len(MODES))) as bar:
            for core in reversed(CORES):
                runs, result = run_core(core, cpus, folder, bar)
                cores[core] = describe(runs)
    setup: dict[str, Any] = boots.setup(f"make price CPUS={cpus}", result)
    setup |= {"cpus": cpus, "size": SIZE, "bytes": BYTES, "repetitions": REPETITIONS, "hot": HOT, "skipped": SKIPPED}
    run = {"setup": setup, "cores": cores}
    show(page({"runs": [run]}))
    runs = {one["setup"]["cpus"]: one for one in kept.read("transfers")["runs"]} | {cpus: run}
    kept.publish({"transfers": {"unit": "transfers of cache lines per write", "runs": [runs[n] for n in sorted(runs)]}})
    return 0
