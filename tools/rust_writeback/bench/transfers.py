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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .. import paths, tables
from ..build import kernel
from ..build.variants import MEASURED
from ..errors import Failure
from ..progress import Bar
from ..steps import only_one, write_whole
from ..vm import emulated, images, machine
from ..vm.options import CORES
from . import boots, price, transfers_page
from .cache_lines import Line, Sums, Symbols, groups, regions, summed
from .transfers_page import CPUS, MODES, PLACES

REPETITIONS = 5
"""As often as each load is counted. It runs once before that: the first run is the first to touch many lines."""
SIZE, BYTES = 4096, 32 << 20
"""Of a write, and of what all writers write."""
WRITES = BYTES // SIZE
MEMORY = "1700M"
HOT = 0.5
"""Handovers per write from which on a line counts as written by several CPUs once per write. With two writers that
alternate at random a line that each write modifies is handed over at every second write."""
SHOWN = 3
"""Functions that are named with a line."""
SMALLEST = 0.005
"""Transfers per write from which on a group of lines is kept."""

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


Runs = dict[tuple[str, str], list[Sums]]
"""By place and mode, in the order of the repetitions."""


def skipped(system_map: str) -> list[str]:
    """The functions of this kernel that SKIPPED names."""
    functions = {name for _, kind, name in (line.split(maxsplit=2) for line in system_map.splitlines()) if kind in "tTwW"}
    matched = {pattern: fnmatch.filter(functions, pattern) for pattern in SKIPPED}
    missing = [pattern for pattern, names in matched.items() if not names]
    if missing:
        raise Failure(f"the kernel has no function {', '.join(missing)}; correct SKIPPED in {Path(__file__).name}")
    return sorted({name for names in matched.values() for name in names})


def accept(core: str, said: Sequence[str], counted: Iterable[list[Line]]) -> Runs:
    """The runs of a boot without the first of each load, if the guest and the plugin prove what they measured."""
    guest, *results = [json.loads(line) for line in said] or [{"core": "unknown"}]
    if guest["core"] != core:
        raise Failure(f"the active core was {guest['core']}, not {core}; nothing is reported")
    loads = [(place, mode) for _ in range(REPETITIONS + 1) for place in PLACES for mode in MODES]
    if [(result["place"], result["mode"]) for result in results] != loads:
        raise Failure(f"of {len(loads)} loads the guest ran {len(results)}; nothing is reported")
    regions_ = [summed((line.key, line) for line in region) for region in counted]
    if len(regions_) != len(loads):
        raise Failure(f"of {len(loads)} loads the plugin counted {len(regions_)}; nothing is reported")
    found: Runs = {}
    for (place, mode), result, sums in zip(loads, results, regions_, strict=True):
        writes, pages = result["writes"], result["pages"]
        if writes != WRITES:
            raise Failure(f"{place}, {mode}: the writers wrote {writes} times, not {WRITES}; nothing is reported")
        # The C core does not drop all that it should.
        cached = pages * 4096 > BYTES // 8
        if cached != (mode != "dontcache") and (core, mode) != ("c", "dontcache"):
            raise Failure(f"{place}, {mode}: {pages} pages were cached in the end; nothing is reported")
        if not sums:
            raise Failure(f"{place}, {mode}: the plugin counted no transfer; nothing is reported")
        if result["repetition"]:
            found.setdefault((place, mode), []).append(sums)
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
    system_map = names.read_text()
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
        devices=("-plugin", f"{price.PLUGIN},lines=on,symbols={names},out={counts},skip={'+'.join(skipped(system_map))}"),
    )
    command = ["python3", "-B", "/share/transfers.py", json.dumps(plan)]
    result = emulated.run(options, command, stream, again=stream.restart)
    price.check(core, result)
    prove(result)
    with counts.open() as text:
        return accept(core, stream.data.decode().splitlines(), regions(text, Symbols(system_map))), result


def describe(runs: Runs) -> dict[str, Any]:
    """All figures of a core, per write: of each load, and of the lines in each mode."""
    names = {name for part in runs.values() for sums in part for line in sums.values() for name in line.functions}
    called = price.demangled(sorted(name for name in names if name.startswith("_R")))
    found: dict[str, Any] = {}
    for place in PLACES:
        of_place = [runs[place, mode] for mode in MODES]
        group_of = groups(sums for part in of_place for sums in part)
        of_modes = [summed((group_of[key], line) for sums in part for key, line in sums.items()) for part in of_place]
        alike = []
        for key in dict.fromkeys(key for sums in of_modes for key in sums):
            lines = [sums.get(key, Line(key[0], number=0)) for sums in of_modes]
            functions = sum((line.functions for line in lines), Counter[str]())
            group: dict[str, Any] = {
                "kind": key[0],
                "functions": [called.get(name, name) for name, _ in functions.most_common(SHOWN)],
                "transfers": [line.transfers / WRITES / REPETITIONS for line in lines],
                "handovers": [line.handovers / WRITES / REPETITIONS for line in lines],
                "lines": [line.number / REPETITIONS for line in lines],
            }
            if max(group["transfers"]) >= SMALLEST:
                alike.append(group)
        loads = {
            mode: {"transfers": [sum(line.transfers for line in sums.values()) / WRITES for sums in part]}
            for mode, part in zip(MODES, of_place, strict=True)
        }
        found[place] = {"loads": loads, "lines": alike}
    return found


def main(cpus: int) -> int:
    """Count on both cores, print, write build/price/transfers-CPUS.json and the committed page."""
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
    document = {"format": 1, "unit": "transfers of cache lines per write", "setup": setup, "cores": cores}
    write_whole(transfers_page.result(cpus), json.dumps(document, indent=1) + "\n")
    tables.show(transfers_page.page([document]))
    transfers_page.write()
    return 0
