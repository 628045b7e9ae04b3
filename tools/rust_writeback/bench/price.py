# SPDX-License-Identifier: GPL-2.0
"""make price: kernel instructions for each MiB until it is durable, C beside Rust.

A guest with one CPU whose clock counts instructions writes to a drive in its own memory, and a
plugin of QEMU counts what the kernel executes between two marks, by function.

With --a CELL --b CELL: the functions that differ most between two cells of the last run, such as
ext4/new/4k/fits/buffered/c and ext4/new/4k/fits/buffered/rust.
"""

import itertools
import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from .. import paths, steps
from ..build import kernel
from ..build.variants import MEASURED
from ..check import lines
from ..errors import Failure, Parser
from ..progress import Bar
from ..run import must
from ..tables import markdown, show
from ..vm import emulated, images, machine
from . import boots, price_page
from .contenders import CORES

PLUGIN = paths.BUILD / "price" / "release" / "libprice.so"
PLUGIN_SOURCES = (paths.TOOLS / "price", paths.PROJECT / "Cargo.toml")
LOAD = paths.BUILD / "bin" / "price"
LOAD_SOURCE = paths.TOOLS / "guest" / "price.c"
DRIVER = paths.TOOLS / "guest" / "price.py"
RESULT = paths.BUILD / "price" / "price.json"


KIB, MIB = 1 << 10, 1 << 20
SIZES = {"700": 700, "4k": 4 * KIB, "64k": 64 * KIB, "1m": MIB}
MODES = ("buffered", "dontcache", "direct")
CACHING, DIRECT = MODES[:2], MODES[2:]
FILE_SYSTEMS = ("xfs", "ext4")
FITS, LARGER = "fits", "larger"
"""The file fits in memory, or is larger than memory."""
LARGER_TIMES = 2.5
"""How many times as large, at least."""

MEMORY = "1700M"
"""Of the guest, in which the drive and the root are, too."""
LITTLE_MEMORY = ("874M", "870M", "866M")
"""The same where files are larger than memory. How often a guest reclaims, and how its free memory lies, is
chance: the same buffered writes have been 0.5 % dearer in one of two guests whose cores differ, and DONTCACHE
writes 15 %. So they are counted in three guests, each a bit smaller than the one before, and the mean is reported."""

LIMIT = 1.002
"""What a buffered or direct write may cost with Rust, times C. None of our hooks is in the way of a direct write."""
DEARER = {
    "xfs/new/1m/fits": 1.02,
    "xfs/disk/1m/fits": 1.01,
    "device/disk/1m/fits": 1.02,
    "xfs/new/1m/larger": 1.02,
    "xfs/disk/1m/larger": 1.01,
    "device/disk/1m/larger": 1.01,
}
"""Rows in which a DONTCACHE write costs more with Rust than with C, and by how much it may: of a write of 1 MiB little
remains but its copies. C writes all that it has counted at once. Rust writes portions of 4 MiB, and each looks up the folios
behind it again, and sends its requests to the drive. A new file on xfs had 1.007 to 1.016 in several runs, and a block device
1.003 to 1.011. With portions of 8 MiB the file had 0.998, but a sync would wait for twice as much."""
SWITCHED = {"device/disk/4k/larger/buffered": 1.003, "device/random/4k/larger/buffered": 1.003}
"""The switch between the cores is inside the two C functions of the walk, and these save registers before it, for C's code
alone. That costs a write 30 instructions with Rust, 0.3 % of these cells. Without the switch, which a kernel with one core
does not have, the walk is about 18 instructions cheaper than C's. In files that fit in memory such a write has 1.0015; the
allocators and reclaim add up to 0.12 %."""
MOST_DIFFERENT = 30

NOT_COUNTED = {
    "the drive, whose work a real one does": r"null_|radix_tree_",
    "its copies of the data, and small ones elsewhere in the kernel, mostly log records": r"memcpy_orig$",
    "the search for slabs to reclaim, which depends on when reclaim runs": r"shrink_slab|do_shrink_slab|list_lru_count_"
    r"|super_cache_count|vmap_node_shrink_",
    "compaction, which depends on how free memory lies": r"isolate_(migrate|free)pages|compact|__reset_isolation|get_pfnblock"
    r"|migrate_|try_to_migrate|remove_migration|page_vma_mapped_walk|rmap_walk",
    "the random number generator, which takes a new seed now and then": r"blake2s_|chacha_|crng_|extract_entropy",
}
"""Why functions are not counted, and the beginnings of their names."""
NOT_JUDGED = re.compile(
    r"__rmqueue_pcplist|rmqueue_bulk|__mod_zone_page_state|__free_one_page|free_pcppages_bulk"
    r"|shrink_|isolate_lru_folios|move_folios_to_lru|lru_move_tail"
)
"""Functions that are counted, but in which the cores are not compared: how often the page allocator refills its lists, and
whether reclaim runs beside a load, depends on where memory was free before. It made buffered writes to a block device 0.5 %
dearer with either core, from one kernel image to the next."""


@dataclass(frozen=True)
class Cell:
    """One load in one mode; each core has it."""

    place: str
    load: str
    size: str
    memory: str
    mode: str

    @property
    def name(self) -> str:
        """As the command line and the results have it."""
        return f"{self.place}/{self.load}/{self.size}/{self.memory}/{self.mode}"

    @property
    def bytes(self) -> int:
        """How much is written."""
        if self.mode == "direct":
            return (16 if self.size == "4k" else 256) * MIB
        if self.memory == LARGER:
            return 320 * MIB
        return {"700": 8, "4k": 32}.get(self.size, 64) * MIB

    def plan(self) -> dict[str, Any]:
        """What the guest is told."""
        return {
            "name": self.name,
            "place": self.place.replace("-journal", " data=journal"),
            "mode": self.mode,
            "order": self.load if self.load in ("append", "random", "short") else "row",
            "before": {"disk": "disk", "random": "disk", "cached": "cached"}.get(self.load, "nothing"),
            "size": SIZES[self.size],
            "bytes": self.bytes,
        }


def _cells(places: Sequence[str], loads: Sequence[str], sizes: Sequence[str], memory: str, modes: Sequence[str]) -> list[Cell]:
    return [Cell(*each) for each in itertools.product(places, loads, sizes, (memory,), modes)]


Boot = tuple[str, list[Cell]]
"""A guest with so much memory, and what it runs."""


def whole_run() -> list[Boot]:
    """The boots of a whole run, for each core."""
    whole, small, record = ("4k", "64k", "1m"), ("4k",), ("700",)
    fits = [
        *_cells(FILE_SYSTEMS, ("new", "disk"), ("1m",), FITS, CACHING),
        *_cells(FILE_SYSTEMS, ("new", "disk"), whole, FITS, DIRECT),
        *_cells(FILE_SYSTEMS, ("cached",), whole, FITS, CACHING),
        *_cells(FILE_SYSTEMS, ("append",), record, FITS, CACHING),
        *_cells(FILE_SYSTEMS, ("random",), small, FITS, MODES),
        *_cells(FILE_SYSTEMS, ("short",), ("64k",), FITS, CACHING),
        *_cells(("ext4-journal",), ("new", "disk"), ("4k", "64k"), FITS, CACHING),
        *_cells(("device",), ("disk",), whole, FITS, MODES),
        *_cells(("device",), ("cached",), whole, FITS, CACHING),
        *_cells(("device",), ("random",), small, FITS, MODES),
    ]
    larger = [
        *_cells(FILE_SYSTEMS, ("new", "disk"), whole, LARGER, CACHING),
        *_cells(FILE_SYSTEMS, ("append",), record, LARGER, CACHING),
        *_cells(FILE_SYSTEMS, ("random",), small, LARGER, CACHING),
        *_cells(("device",), ("disk",), whole, LARGER, CACHING),
        *_cells(("device",), ("random",), small, LARGER, CACHING),
    ]
    return [gate(), (MEMORY, _in_turn(fits)), *((mem, _in_turn(larger)) for mem in LITTLE_MEMORY)]


def gate() -> Boot:
    """The boot of make test, and the first one of a whole run."""
    return MEMORY, _in_turn(_cells(FILE_SYSTEMS, ("new", "disk"), ("4k", "64k"), FITS, CACHING))


def _in_turn(cells: Sequence[Cell]) -> list[Cell]:
    """What does not drop comes first. It is the same work for both cores then: which memory is free, and how it
    lies, depends on what was dropped before. Of what drops, larger writes come first: small pages that were dropped
    leave free memory in pieces, too small for the folios of larger writes."""

    def turn(cell: Cell) -> tuple[bool, str, int]:
        drops = cell.mode == "dontcache"
        return drops, cell.mode, -SIZES[cell.size] if drops else 0

    return sorted(cells, key=turn)


def ensure_plugin() -> None:
    """Compile the plugin. Its crate asks for a newer compiler than it needs."""
    target = PLUGIN.parents[1]
    command = ["cargo", "build", "--release", "--package=price", "--ignore-rust-version", f"--target-dir={target}"]

    def build() -> None:
        must(command, paths.LOG / "price-plugin.log", "the build of QEMU's plugin", cwd=paths.PROJECT)

    steps.step("price-plugin", steps.digest(*PLUGIN_SOURCES), [PLUGIN], build)


Functions = dict[str, int]
"""Instructions by function."""


@dataclass
class Measured:
    """What a cell cost one core."""

    cell: Cell
    guests: list[Functions]
    stays: bool
    """Whether the pages that were written are cached in the end, in any guest."""

    def per_mib(self) -> Functions:
        """Instructions for each MiB that was written, by function."""
        whole = sum(map(Counter, self.guests), Counter[str]())
        return {name: round(count * MIB / self.cell.bytes / len(self.guests)) for name, count in whole.items()}

    def judged(self) -> list[int]:
        """Instructions for each MiB that was written, by guest, without what is not judged."""
        judged = ([count for name, count in one.items() if not NOT_JUDGED.match(name)] for one in self.guests)
        return [round(sum(counts) * MIB / self.cell.bytes) for counts in judged]

    @property
    def total(self) -> int:
        """All of them, as the mean of the guests."""
        return round(fmean(round(sum(one.values()) * MIB / self.cell.bytes) for one in self.guests))


Results = dict[str, dict[str, Measured]]
"""By the core, and the name of the cell."""


def regions(text: str) -> list[Functions]:
    """What the plugin has counted between the marks, without the drive and what is chance."""
    skipped = re.compile("|".join(NOT_COUNTED.values()))
    found: list[Functions] = []
    for line in text.splitlines():
        if line == "region":
            found.append({})
            continue
        count, _, name = line.partition(" ")
        if not skipped.match(name):
            found[-1][name] = int(count)
    return found


def whole(core: str, planned: Sequence[dict[str, str]], said: Sequence[str], counted: int) -> list[dict[str, Any]]:
    """What the guest said, if its core ran all loads of the plan, and the plugin counted as many."""
    guest, *ran = found = [json.loads(line) for line in said] or [{"core": "unknown"}]
    if guest["core"] != core:
        raise Failure(f"the active core was {guest['core']}, not {core}; nothing is reported")
    if len(ran) != len(planned) or any(one | plan != one for one, plan in zip(ran, planned, strict=True)):
        raise Failure(f"of {len(planned)} loads the guest ran {len(ran)}; nothing is reported")
    if counted != len(planned):
        raise Failure(f"of {len(planned)} loads the plugin counted {counted}; nothing is reported")
    return found


def accept(core: str, cells: Sequence[Cell], said: Sequence[str], counted: Sequence[Functions]) -> dict[str, Measured]:
    """The results of a boot, if the guest and the plugin prove what they measured."""
    guest, *results = whole(core, [{"name": cell.name} for cell in cells], said, len(counted))
    found = {}
    for cell, result, functions in zip(cells, results, counted, strict=True):
        if not functions:
            raise Failure(f"{cell.name}: the plugin counted no instruction of the kernel; nothing is reported")
        if cell.memory == LARGER and cell.bytes < LARGER_TIMES * guest["available"] * MIB:
            raise Failure(
                f"{cell.name}: the guest has {guest['available']} MiB of memory available, too much for a file that is"
                f" {LARGER_TIMES} times as large; give it less in {Path(__file__).name}"
            )
        stays = result["pages"] * 4096 > cell.bytes // 8
        # The C core does not drop all that it should.
        if stays != (cell.mode == "buffered" or cell.load == "cached") and (core, cell.mode) != ("c", "dontcache"):
            raise Failure(f"{cell.name}: {result['pages']} pages were cached in the end; nothing is reported")
        found[cell.name] = Measured(cell, [functions], stays)
    return found


def check(core: str, result: emulated.VmResult) -> None:
    """Refuse a boot whose loads failed."""
    if result.status:
        words = " ".join(result.stderr.decode(errors="replace").split())[-300:]
        raise Failure(f"the loads of the {core} core failed: {words or f'status {result.status}'}")


def run_core(core: str, boot: Boot) -> tuple[dict[str, Measured], emulated.VmResult]:
    """Boot one core, and run the cells."""
    mem, cells = boot
    with tempfile.NamedTemporaryFile("r", dir=paths.BUILD, prefix="price-") as counts:
        options = emulated.VmOptions(
            core=core,
            smp=1,
            mem=mem,
            icount=True,
            nvme=None,
            append="norandmaps nohz=off",
            programs=(LOAD,),
            devices=("-plugin", f"{PLUGIN},symbols={MEASURED.out / 'System.map'},out={counts.name}"),
        )
        plan = json.dumps([cell.plan() for cell in cells])
        command = ["env", "PYTHONHASHSEED=0", "python3", "-B", "-c", DRIVER.read_text(), plan]
        result = emulated.run(options, command, again=emulated.from_scratch)
        check(core, result)
        return accept(core, cells, result.stdout.decode().splitlines(), regions(Path(counts.name).read_text())), result


def _on_one_cpu(cpus: Iterator[int]) -> None:
    """Bind all threads of a guest to one CPU of the host, where none interrupts another one.

    If QEMU's main loop runs when the guest has become idle, but before the last instructions are added to the guest's
    clock, it moves that clock too far, and the guest's timers fire late: the figures of that boot differ from then on.
    Only root may use SCHED_FIFO. Otherwise that happens about once a minute.
    """
    os.sched_setaffinity(0, {next(cpus)})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def measure(plan: Sequence[Boot]) -> tuple[Results, emulated.VmResult]:
    """Boot both cores, two guests at a time: other load changes no figure."""
    kernel.ensure()
    ensure_plugin()
    images.ensure_program(LOAD_SOURCE, LOAD)
    images.ensure(whole=True)
    found: Results = {core: {} for core in CORES}
    cpus = itertools.cycle(sorted(os.sched_getaffinity(0)))
    with (
        Bar("counting", len(CORES) * len(plan)) as bar,
        ThreadPoolExecutor(len(CORES), initializer=_on_one_cpu, initargs=(cpus,)) as pool,
    ):
        running = [(core, pool.submit(run_core, core, boot)) for boot in plan for core in CORES]
        for core, future in running:
            cells, result = future.result()
            bar.advance()
            for name, measured in cells.items():
                if before := found[core].get(name):
                    measured = Measured(before.cell, before.guests + measured.guests, before.stays or measured.stays)
                found[core][name] = measured
    return found, result


def judge(found: Results) -> list[str]:
    """What of Rust costs more than it may, beside C."""
    wrong = []
    for name, rust in found["rust"].items():
        c = found["c"][name]
        if c.stays != rust.stays:
            continue
        dontcache = rust.cell.mode == "dontcache"
        limit = DEARER.get(name.rpartition("/")[0], 1.0) if dontcache else SWITCHED.get(name, LIMIT)
        # What exceeds the limit in each guest is not chance.
        ratio = min(one / other for one, other in zip(rust.judged(), c.judged(), strict=True))
        if ratio > limit:
            wrong.append(f"{name} {ratio:.4f} (at most {limit:.3f})")
    return wrong


def difference(one: str, other: str) -> None:
    """Print the functions that differ most between two cells of the last run."""
    try:
        kept = json.loads(RESULT.read_text())
    except (OSError, ValueError):
        kept = {"code": None}
    if kept["code"] != lines.fingerprint():
        raise Failure("there is no complete result of this code; run: make price")
    known = {f"{cell}/{core}": functions for core in CORES for cell, functions in kept[core].items()}
    if unknown := [name for name in (one, other) if name not in known]:
        some = ", ".join(list(known)[:3])
        raise Failure(f"there is no cell {unknown[0]}; cells are called {some}, ...; tools/results/price.json has all", 2)
    sides = known[one], known[other]
    names = sorted({*sides[0], *sides[1]}, key=lambda name: -abs(sides[1].get(name, 0) - sides[0].get(name, 0)))
    rows = [("all", *(sum(side.values()) for side in sides))]
    called = demangled(names[:MOST_DIFFERENT])
    rows += [(called[name], *(side.get(name, 0) for side in sides)) for name in names[:MOST_DIFFERENT]]
    cells = [[f"`{name}`", f"{a}", f"{b}", f"{b - a:+}"] for name, a, b in rows]
    show(f"Instructions per MiB: A is {one}, B is {other}\n\n{markdown(('function', 'A', 'B', 'B - A'), cells)}")


def demangled(names: Sequence[str]) -> dict[str, str]:
    """What people call these functions."""
    command = ["llvm-cxxfilt", *names]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(zip(names, found, strict=True))


def keep(found: Results, setup: Mapping[str, Any]) -> dict[str, Any]:
    """Keep every function for difference(), and commit the sums: the figures, the page, the README's table."""
    from . import kept  # which needs what this module builds

    functions = {core: {name: measured.per_mib() for name, measured in found[core].items()} for core in CORES}
    steps.write_whole(RESULT, json.dumps({"code": setup["code"], **functions}) + "\n")
    cells = {
        name: {core: {"instructions": found[core][name].total, "stays": found[core][name].stays} for core in CORES}
        for name in found["rust"]
    }
    whole = {"format": 1, "unit": "kernel instructions per MiB", "setup": setup, "cells": cells}
    kept.publish({"price": whole})
    return whole


def main(arguments: list[str]) -> int:
    """Count all cells on both cores, print, keep, judge; or compare two cells of the last run."""
    parser = Parser(prog="price", description=__doc__)
    parser.add_argument("--a", metavar="CELL", help="a cell of the last run")
    parser.add_argument("--b", metavar="CELL", help="the cell that is compared with it")
    parser.add_argument("--cpus", metavar="N", help="count what moves cache lines between so many CPUs instead")
    options = parser.parse_args(arguments)
    if (options.a is None) != (options.b is None):
        raise Failure("give two cells to compare: A=ext4/new/4k/fits/buffered/c B=ext4/new/4k/fits/buffered/rust", 2)
    if options.cpus is not None and options.a:
        raise Failure("A and B compare results with one CPU; omit CPUS, or omit A and B", 2)
    machine.polite()
    if options.a:
        difference(options.a, options.b)
        return 0
    if options.cpus is not None:
        from . import transfers  # which needs what this module builds

        return transfers.main(int(options.cpus) if options.cpus.isdecimal() else 0)
    found, result = measure(whole_run())
    setup = boots.setup("make price", result) | {
        "file_larger_than_memory_times": LARGER_TIMES,
        "guests_of_little_memory": len(LITTLE_MEMORY),
        "not_counted": NOT_COUNTED,
    }
    show(price_page.page(keep(found, setup)))
    if wrong := judge(found):
        raise Failure(f"Rust costs more instructions than the limits allow: {', '.join(wrong)}")
    return 0
