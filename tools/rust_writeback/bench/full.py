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
from . import boots, catalogue, jobs, journal, report, results, sim, stats, summary, table, variants

FEWEST_PAIRS, MOST_PAIRS = 3, 10
"""An interval over two pairs can be narrow by chance."""

MOST_CPUS = 16
"""They take turns, so more would only be slower."""

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
    parser.add_argument("--pairs", type=int, help=f"boots of each variant (up to {MOST_PAIRS}; 1 with --sim)")
    parser.add_argument("--mem", default="192M", help="memory of the guest (default: %(default)s)")
    parser.add_argument("--bps", help=f"bytes a second that the drive takes (default: {boots.Machine.bps})")
    parser.add_argument("--iops", help="requests a second that the drive takes (default: any number)")
    parser.add_argument("--sim", nargs="?", const="1", metavar="1", help="count instructions instead of seconds")
    parser.add_argument("--quick", nargs="?", const="1", metavar="1", help="with --sim: a few loads only")
    parser.add_argument("--cpus", type=int, help=f"with --sim: CPUs that take turns (default: {sim.Simulated.cpus})")
    parser.add_argument("--repeat", action="store_true", help="with --sim: run a load twice and compare every figure")
    parser.add_argument("--dry-run", action="store_true", help="say what would run and how long, touch nothing")
    parser.add_argument("--report", type=Path, help="where the report goes (build/bench; build/sim with --sim)")
    options = parser.parse_args(arguments)
    if options.pairs is not None and options.pairs < 1:
        raise Failure("--pairs takes 1 or more; three are the least that give an interval worth having", 2)
    for name in ("mem", "bps", "iops"):
        try:
            amount(getattr(options, name) or "1")
        except ValueError as error:
            raise Failure(f"--{name} {error} is no amount; give a number, with K, M, G or T behind it if you like", 2) from None
    for name in ("sim", "quick"):
        if getattr(options, name) not in (None, "1"):
            raise Failure(f"{name.upper()}={getattr(options, name)}: it is 1, or left out", 2)
    if options.sim:
        _check_sim(options)
    elif options.quick or options.repeat or options.cpus is not None:
        raise Failure("QUICK=1, --cpus and --repeat are for the simulation; add SIM=1 or --sim", 2)
    return options


def _check_sim(options: argparse.Namespace) -> None:
    """What makes no sense where nothing is timed."""
    if options.bps is not None or options.iops is not None:
        raise Failure("the simulation's drive has a fixed latency and no other limit; leave --bps and --iops out", 2)
    if options.cpus is not None and not 1 <= options.cpus <= MOST_CPUS:
        raise Failure(f"--cpus takes 1 to {MOST_CPUS}", 2)
    if options.quick and options.only:
        raise Failure("QUICK=1 is a selection of its own; leave it or --only out", 2)


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
        return len(self.compared) * self.vm.seconds(loads)

    @property
    def exact(self) -> bool:
        """Does one boot say all, so that there is nothing to repeat?"""
        return self.vm.counted and self.limit == 1

    def groups(self, metrics: Sequence[summary.Metric]) -> list[summary.Group]:
        """The figures so far."""
        ratio = stats.exact_ratio if self.exact else stats.paired_ratio
        return summary.summarize(self.measurements, metrics, True, ratio)

    def open(self) -> list[catalogue.Load]:
        """The loads that need more pairs."""
        loads = [load for load in self.loads if load.name not in self.deadly]
        if not self.done:
            return loads
        groups = self.groups(summary.SHORT[:1])
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
        """Boot every variant once for all that is left to measure."""
        for together in self.vm.share_out(self.open()):
            planned = results.plan(together)
            for variant in self.compared:
                self._boot(boots.Boot(number, variant, together[0].place, planned), kept, bar)

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
        """Pair after pair, until nothing is open or the limit is reached.

        A kernel without the core that is asked for ends it: another boot would not have it either.
        """
        booted = len(self.vm.share_out(self.loads))
        total = min(self.limit, FEWEST_PAIRS) * len(self.compared) * (len(self.loads) + 2 * booted)
        with Bar(table.many("load", len(self.loads)), total, interval=10) as bar:
            for number in range(1, self.limit + 1):
                if not self.open():
                    break
                try:
                    self.pair(number, kept, bar)
                except Failure as failure:
                    if not self.measurements:
                        raise
                    self.problems.append(str(failure))
                    break

    def notes(self) -> list[str]:
        """Why it ended where it did, and what is missing."""
        left = [load.name for load in self.open()]
        groups = self.groups(summary.SHORT[:1])
        measured = {(group.scenario.partition(": ")[0], *group.key[1:]) for group in groups}
        missing = [load.name for load in self.loads if (load.scenario.name, load.place, load.mode) not in measured]
        narrow = len(self.loads) - len({*left, *missing, *self.deadly})
        notes = [] if self.exact else [
            f"The ratio of the bandwidths has an interval narrower than {100 * stats.NARROW:.0f} % in {narrow} of"
            f" {table.many('load', len(self.loads))}."
        ]
        if left and not self.exact:
            notes.append(f"Stopped at the limit of {table.many('pair', self.limit)}: {', '.join(left)}.")
        if missing:
            notes.append(f"Nothing could be measured of {', '.join(missing)}.")
        return notes + [f"partial: {problem}" for problem in dict.fromkeys(self.problems)]


def plan(options: argparse.Namespace) -> Bench:
    """What the command line asks for."""
    compared = variants.parse(options.variants)
    vm: boots.Machine
    if not options.sim:
        vm = boots.Machine(mem=options.mem, bps=options.bps or boots.Machine.bps, iops=options.iops)
        return Bench(vm, catalogue.matrix(options.only), compared, options.pairs or MOST_PAIRS)
    chosen = options.only or (sim.REPEATED if options.repeat and not options.quick else ())
    loads = sim.select(sim.QUICK if options.quick else chosen)
    vm = sim.Simulated(mem=options.mem, cpus=options.cpus or sim.Simulated.cpus)
    return Bench(vm, loads, compared, options.pairs or 1)


def announce(bench: Bench) -> None:
    """What will run, and how long it will take."""
    fewest = min(FEWEST_PAIRS, bench.limit)
    minutes = (round(number * bench.seconds(bench.loads) / 60) for number in (fewest, bench.limit))
    names = ", ".join(variants.title(variant.name) for variant in bench.compared)
    pairs = f"{table.many('pair', fewest, bench.limit)} of boots"
    length = "counted in instructions, one boot each" if bench.exact else pairs
    what = f"{table.many('load', len(bench.loads))} on {names}: {length}"
    print(f"{what}, about {table.many('minute', *minutes)}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Measure, print, write the report."""
    machine.polite()
    options = parse(arguments)
    bench = plan(options)
    bench.vm.check([load.scenario for load in bench.loads])
    folder = options.report or paths.BUILD / ("sim" if options.sim else "bench")
    announce(bench)
    if options.dry_run:
        for load in bench.loads:
            print(f"{load.name}: {load.scenario.title}, {load.moved / 1e6:.0f} MB")
        return 0
    fio = jobs.require_uncached()
    kernel.ensure()
    begin = time.monotonic()
    with steps.only_one("bench"):
        if options.repeat:
            sim.repeat(bench.vm, bench.loads, bench.compared)
            return 0
        key = journal.fingerprint(bench.vm, bench.loads, bench.compared, paths.BZIMAGE)
        bench.run(journal.Journal(folder / "raw", key))
        return finish(bench, folder, fio, arguments, begin)


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
    costs = (summary.WORK, *summary.COSTS) if bench.vm.counted else summary.COSTS
    groups = bench.groups((*summary.SHORT, *costs, *summary.COUNTS))
    tables = [(heading, costs if metrics is summary.COSTS else metrics) for heading, metrics in TABLES]
    tables = [(heading, metrics) for heading, metrics in tables if table.rows(groups, metrics)]
    for heading, metrics in tables:
        print(f"{heading}:")
        table.show(groups, metrics)
    words = bench.vm.words
    print(words.legend)
    for line in [*summary.verdicts(groups, words.pairs_of), *bench.notes()]:
        print(line)
    report.write(folder, setup, known, bench.measurements, groups, tables, bench.notes(), words)
    place = os.path.relpath(folder / "index.html", paths.PROJECT)
    print(f"{time.monotonic() - begin:.0f} s, {setup['accelerator']}; the report is {place}")
    return 1 if bench.problems else 0


if __name__ == "__main__":
    sys.exit(run_main(lambda: main(sys.argv[1:])))
