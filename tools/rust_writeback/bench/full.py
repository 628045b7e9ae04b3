# SPDX-License-Identifier: GPL-2.0
"""make bench: every scenario in every mode and place, until the intervals are narrow."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from .. import kernel, machine, paths, steps
from .. import vm as virtual
from ..errors import Failure, run_main
from ..progress import Bar
from ..vmoptions import amount
from . import boots, catalogue, jobs, journal, report, results, stats, summary, table, variants

FEWEST_PAIRS = 3
"""An interval over two pairs can be narrow by chance."""

BOOT_SECONDS, STEP_SECONDS = 12.0, 1.5
"""What a boot, and a step beside its load, takes an emulated guest."""

TABLES: report.Tables = (
    ("What the loads did", summary.SHORT),
    ("What they cost", summary.COSTS),
    ("What the kernel counted", summary.COUNTS),
)


class Parser(argparse.ArgumentParser):
    """A mistake on the command line is told in one line."""

    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message}; allowed: {' '.join(self.format_usage().split()).removeprefix('usage: ')}", 2)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line of the benchmark."""
    parser = Parser(prog="bench", description=__doc__, allow_abbrev=False)
    parser.add_argument("--only", action="append", default=[], help="loads to run, as scenario/place/mode with * and ?")
    parser.add_argument("--variants", default="c,rust", help="what is compared with the first (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=10, help="boots of each variant at most (default: %(default)s)")
    parser.add_argument("--mem", default="192M", help="memory of the guest (default: %(default)s)")
    parser.add_argument("--bps", default="112M", help="bytes a second that the drive takes (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="say what would run and how long, touch nothing")
    parser.add_argument("--report", type=Path, default=paths.BUILD / "bench", help="where the report goes")
    options = parser.parse_args(arguments)
    if options.pairs < 1:
        raise Failure("--pairs takes 1 or more; three are the least that give an interval worth having", 2)
    return options


@dataclass
class Bench:
    """A benchmark under way."""

    vm: boots.Machine
    loads: list[catalogue.Load]
    compared: list[variants.Variant]
    limit: int
    done: list[boots.Boot] = field(default_factory=list)
    measurements: list[results.Measurement] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    deadly: set[str] = field(default_factory=set)
    """loads that took a guest with them, which is once too often"""

    def seconds(self, loads: Sequence[catalogue.Load]) -> float:
        """How long one pair of boots may take."""
        a_boot = BOOT_SECONDS * len({load.place for load in loads})
        return len(self.compared) * (a_boot + sum(STEP_SECONDS + load.moved / amount(self.vm.bps) for load in loads))

    def open(self) -> list[catalogue.Load]:
        """The loads that need more pairs."""
        loads = [load for load in self.loads if load.name not in self.deadly]
        if not self.done:
            return loads
        groups = summary.summarize(self.measurements, summary.SHORT[:1], partial=True)
        return [load for load in loads if not self._settled(load, groups)]

    def _settled(self, load: catalogue.Load, groups: Sequence[summary.Group]) -> bool:
        """Narrow in every section and for every variant, or not to be had at all."""
        for group in groups:
            if group.scenario.partition(": ")[0] == load.scenario.name and group.key[1:] == (load.place, load.mode):
                ratios = [group.cell(summary.MAIN).ratios.get(variant.name) for variant in self.compared[1:]]
                if not all(ratio and ratio.pairs >= FEWEST_PAIRS and ratio.narrow for ratio in ratios):
                    return False
        return True

    def pair(self, number: int, kept: journal.Journal, bar: Bar) -> None:
        """Boot every variant once in every place that has something left to measure."""
        loads = self.open()
        for place in dict.fromkeys(load.place for load in loads):
            planned = results.plan([load for load in loads if load.place == place])
            for variant in self.compared:
                self._boot(boots.Boot(number, variant, place, planned), kept, bar)

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
        """Pair after pair, until nothing is open or the limit is reached."""
        places = len({load.place for load in self.loads})
        total = min(self.limit, FEWEST_PAIRS) * len(self.compared) * (len(self.loads) + 2 * places)
        with Bar(f"{len(self.loads)} loads", total, interval=10) as bar:
            for number in range(1, self.limit + 1):
                if not self.open():
                    break
                self.pair(number, kept, bar)

    def notes(self) -> list[str]:
        """Why it ended where it did, and what is missing."""
        left = [load.name for load in self.open()]
        groups = summary.summarize(self.measurements, summary.SHORT[:1], partial=True)
        measured = {(group.scenario.partition(": ")[0], *group.key[1:]) for group in groups}
        missing = [load.name for load in self.loads if (load.scenario.name, load.place, load.mode) not in measured]
        narrow = len(self.loads) - len({*left, *missing, *self.deadly})
        notes = [
            f"The ratio of the bandwidths has an interval narrower than {100 * stats.NARROW:.0f} % in {narrow} of"
            f" {len(self.loads)} loads."
        ]
        if left:
            notes.append(f"Stopped at the limit of {self.limit} pairs: {', '.join(left)}.")
        if missing:
            notes.append(f"Nothing could be measured of {', '.join(missing)}.")
        return notes + [f"partial: {problem}" for problem in dict.fromkeys(self.problems)]


def announce(bench: Bench) -> None:
    """What will run, and how long it will take."""
    fewest = min(FEWEST_PAIRS, bench.limit)
    pairs = list(dict.fromkeys(str(number) for number in (fewest, bench.limit)))
    minutes = list(dict.fromkeys(f"{number * bench.seconds(bench.loads) / 60:.0f}" for number in (fewest, bench.limit)))
    names = ", ".join(variants.title(variant.name) for variant in bench.compared)
    what = f"{len(bench.loads)} loads on {names}: {' to '.join(pairs)} pairs of boots"
    print(f"{what}, about {' to '.join(minutes)} minutes", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Measure, print, write the report."""
    machine.polite()
    options = parse(arguments)
    vm = boots.Machine(mem=options.mem, bps=options.bps)
    bench = Bench(vm, catalogue.matrix(options.only), variants.parse(options.variants), options.pairs)
    vm.check([load.scenario for load in bench.loads])
    announce(bench)
    if options.dry_run:
        for load in bench.loads:
            print(f"{load.name}: {load.scenario.title}, {load.moved / 1e6:.0f} MB")
        return 0
    fio = jobs.require_uncached()
    kernel.ensure()
    begin = time.monotonic()
    with steps.only_one("bench"):
        key = journal.fingerprint(vm, bench.loads, bench.compared, paths.BZIMAGE)
        bench.run(journal.Journal(options.report / "raw", key))
        return finish(bench, options.report, fio, arguments, begin)


def finish(bench: Bench, folder: Path, fio: str, arguments: Sequence[str], begin: float) -> int:
    """Tell what there is to tell; partial results are told, but are no success."""
    for problem in dict.fromkeys(bench.problems):
        print(f"partial: {problem}", file=sys.stderr)
    if not bench.measurements:
        raise Failure("nothing could be measured; the lines above say why")
    known = [boot.known() for boot in bench.done]
    setup = boots.describe(bench.vm, fio, known, bench.loads)
    setup["command"] = " ".join(["make bench" if not arguments else "python3 -m rust_writeback bench", *arguments])
    setup["seconds"] = round(time.monotonic() - begin)
    groups = summary.summarize(bench.measurements, summary.FULL, partial=True)
    tables = [(heading, metrics) for heading, metrics in TABLES if table.rows(groups, metrics)]
    for heading, metrics in tables:
        print(f"{heading}:")
        table.show(groups, metrics)
    print(table.LEGEND)
    for line in [*summary.verdicts(groups), *bench.notes()]:
        print(line)
    report.write(folder, setup, known, bench.measurements, groups, tables, bench.notes())
    place = os.path.relpath(folder / "index.html", paths.PROJECT)
    print(f"{time.monotonic() - begin:.0f} s, {setup['accelerator']}; the report is {place}")
    return 1 if bench.problems else 0


if __name__ == "__main__":
    sys.exit(run_main(lambda: main(sys.argv[1:])))
