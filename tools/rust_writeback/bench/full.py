# SPDX-License-Identifier: GPL-2.0
"""make bench: every scenario in every mode and place, on every core."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import paths, steps
from ..errors import Failure, Parser, check_flags
from ..progress import Bar
from ..vm import machine
from ..vm import emulated as virtual
from ..vm.options import amount
from . import boots, catalogue, contenders, drives, jobs, journal, native, report, results, summary, table

MOST_CPUS = 16
"""They take turns, so more would only be slower."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line of the benchmark."""
    parser = Parser(prog="bench", description=__doc__, allow_abbrev=False)
    profiles = ", ".join(drives.PROFILES)
    parser.add_argument("--only", action="append", default=[], help="loads to run, as scenario/place/mode with * and ?")
    parser.add_argument("--pairs", type=int, default=10, help="boots of each variant (default: %(default)s)")
    parser.add_argument("--drive", help=f"all loads on this drive: {profiles}, or limits like bps=1G,iops=600")
    parser.add_argument("--mem", help="memory of the guest (default: as each load says)")
    parser.add_argument("--native", nargs="?", const="1", metavar="1", help="in user-mode Linux, on the real CPU")
    parser.add_argument("--cpus", type=int, help="CPUs of the guest")
    parser.add_argument("--dry-run", action="store_true", help="say what would run and how long, touch nothing")
    parser.add_argument("--report", type=Path, help="where the report goes (below build/: bench or native)")
    options = parser.parse_args(arguments)
    check_flags(options, "native")
    options.drive = drives.parse(options.drive) if options.drive else None
    check_pairs(options.pairs)
    _check_amounts(options)
    return options


def check_pairs(pairs: int) -> None:
    """A number of pairs has to be one."""
    if pairs < 1:
        raise Failure("--pairs has to be at least 1; give 3 or more for a useful interval", 2)


def _check_amounts(options: argparse.Namespace) -> None:
    try:
        amount(options.mem or "1G")
    except ValueError:
        raise Failure(f"--mem {options.mem} is not a size; give a number followed by M or G", 2) from None
    if options.cpus is not None and not 1 <= options.cpus <= MOST_CPUS:
        raise Failure(f"--cpus {options.cpus} is not possible; give 1 to {MOST_CPUS}", 2)


@dataclass
class Bench:
    """A benchmark under way. How many pairs there are is settled before the first."""

    vm: boots.Machine
    loads: list[catalogue.Load]
    compared: Sequence[str]
    pairs: int
    done: list[boots.Boot] = field(default_factory=list)
    measurements: list[results.Measurement] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    deadly: set[str] = field(default_factory=set)
    """loads that took a guest with them, which is once too often"""

    def seconds(self) -> float:
        """How long one pair of boots may take."""
        return len(self.compared) * self.vm.seconds(self.loads)

    def ordered(self) -> list[results.Measurement]:
        """The measurements in the order of the catalogue and of the variants."""
        return results.in_order(self.measurements, self.loads, self.compared)

    def pair(self, number: int, kept: journal.Journal, bar: Bar) -> None:
        """Boot every variant once; which one is first, and which mode, alternates."""
        left = [load for load in self.loads if load.name not in self.deadly]
        for together in self.vm.share_out(left):
            planned = results.plan(catalogue.in_turn(together, number))
            for variant in self.compared if number % 2 else self.compared[::-1]:
                self._boot(boots.Boot(number, variant, planned), kept, bar)

    def _boot(self, boot: boots.Boot, kept: journal.Journal, bar: Bar) -> None:
        """Run all steps. What comes after a load that took the guest with it gets a new guest."""
        while True:
            dead = self._part(boot, kept, bar)
            lines = results.read_lines(boot.output)
            if not dead or not lines:
                break
            told = sum(line["kind"] in ("step", "refused") for line in lines)
            self.deadly.update(step.load.name for step in boot.steps[told : told + 1])
            rest = results.plan([step.load for step in boot.steps[told + 1 :]])
            if not rest:
                break
            boot = replace(boot, steps=rest, output=b"", facts={}, part=boot.part + 1)

    def _part(self, boot: boots.Boot, kept: journal.Journal, bar: Bar) -> bool:
        """One boot, or what is kept of it; did the guest die?"""
        dead = False
        if kept.has(boot):
            bar.advance(len(boot.steps) + 2)
        else:
            try:
                boots.run(self.vm, boot, bar)
            except virtual.VmFailure as failure:
                if failure.qemu_died:
                    raise
                # What it had finished counts, and the others go on.
                dead = True
                self.problems.append(f"{boot.title}, {boot.place}: {failure}")
            kept.save(boot)
        found = results.sift(results.read_lines(boot.output), boot.steps, boot.pair, boot.variant)
        self.done.append(boot)
        self.measurements += found.measurements
        self.problems += [problem for problem in found.problems if not dead or results.NOT_ENDED not in problem]
        return dead

    def run(self, kept: journal.Journal) -> None:
        """Pair after pair."""
        booted = len(self.vm.share_out(self.loads))
        total = self.pairs * len(self.compared) * (len(self.loads) + 2 * booted)
        with Bar(table.many("load", len(self.loads)), total, interval=10) as bar:
            for number in range(1, self.pairs + 1):
                self.pair(number, kept, bar)

    def notes(self, known: Sequence[dict[str, Any]]) -> list[str]:
        """What is missing, and what else there is to know."""
        measured = {(m.scenario.partition(": ")[0], m.place, m.mode) for m in self.measurements}
        missing = [load.name for load in self.loads if (load.scenario.name, load.place, load.mode) not in measured]
        notes = [f"Nothing could be measured of {', '.join(missing)}."] if missing else []
        return notes + boots.told_deaths(known) + [f"partial: {problem}" for problem in dict.fromkeys(self.problems)]


def plan(options: argparse.Namespace) -> Bench:
    """What the command line asks for."""
    vm = native.Native() if options.native else boots.Machine()
    if options.cpus:
        vm = replace(vm, cpus=options.cpus)
    loads = vm.select(catalogue.matrix(options.only), options.drive)
    if options.mem:
        loads = [replace(load, mem=options.mem) for load in loads]
    return Bench(vm, loads, contenders.CORES, options.pairs)


def announce(bench: Bench) -> None:
    """What will run, and how long it will take."""
    minutes = round(bench.pairs * bench.seconds() / 60)
    names = ", ".join(contenders.title(variant) for variant in bench.compared)
    what = f"{table.many('load', len(bench.loads))} on {names}: {table.many('pair', bench.pairs)} of boots"
    print(f"{what}, about {table.many('minute', max(1, minutes))}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Measure, print, write the report."""
    machine.polite()
    options = parse(arguments)
    bench = plan(options)
    announce(bench)
    if options.dry_run:
        for load in bench.loads:
            print(f"{load.name}, {load.drive}: {load.scenario.title}, {load.moved / 1e6:.0f} MB")
        return 0
    command = " ".join(["make bench" if not arguments else "python3 -m rust_writeback bench", *arguments])
    return carry_out(bench, options.report or paths.BUILD / bench.vm.report, command)


def carry_out(bench: Bench, folder: Path, command: str) -> int:
    """Build, measure what was not measured yet, and report; a benchmark that is finished begins anew next time."""
    fio = jobs.version()
    bench.vm.ensure()
    begin = time.monotonic()
    with steps.only_one("bench"):
        key = journal.fingerprint(bench.vm, bench.loads, bench.compared, bench.pairs)
        kept = journal.Journal(folder / "raw", key)
        bench.run(kept)
        status = finish(bench, folder, fio, command, begin)
        kept.close()
        return status


def tables_of(groups: Sequence[summary.Group], beside: Sequence[summary.Group]) -> list[table.Table]:
    """The tables of a report, with the columns that there are figures for."""
    about = [
        table.Beside("DONTCACHE beside buffered", beside, summary.BESIDE),
        table.Table("What the loads did", groups, summary.SHORT),
        table.Table("What they cost", groups, summary.COSTS),
    ]
    tables = [replace(one, metrics=[m for m in one.metrics if _there(one.groups, m)]) for one in about]
    return [one for one in tables if one.rows()]


def _there(groups: Sequence[summary.Group], metric: summary.Metric) -> bool:
    return any(cell.values for group in groups for cell in group.cells if cell.metric == metric)


def finish(bench: Bench, folder: Path, fio: str, command: str, begin: float) -> int:
    """Tell what there is to tell; partial results are told, but are no success."""
    for problem in dict.fromkeys(bench.problems):
        print(f"partial: {problem}", file=sys.stderr)
    if not bench.measurements:
        raise Failure("nothing could be measured; the lines above say why")
    known = [boot.known() for boot in bench.done]
    setup = boots.describe(bench.vm, fio, known, bench.loads)
    setup["command"] = command
    setup["seconds"] = round(time.monotonic() - begin)
    measurements = bench.ordered()
    groups, beside = summary.summarize(measurements, summary.FULL), summary.beside(measurements)
    tables = tables_of(groups, beside)
    told = report.Report(setup, known, measurements, groups, beside, tables, bench.notes(known), bench.vm.words)
    return tell(told, folder, begin, bench.problems)


def tell(told: report.Report, folder: Path, begin: float, problems: Sequence[str]) -> int:
    """Print the report and write it. Partial results are no success."""
    report.show(told)
    report.write(folder, told)
    place = os.path.relpath(folder / "index.html", paths.PROJECT)
    print(f"{time.monotonic() - begin:.0f} s, {told.setup['accelerator']}; the report is {place}")
    return 1 if problems else 0
