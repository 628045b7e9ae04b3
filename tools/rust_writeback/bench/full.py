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

from .. import paths, steps, tables
from ..errors import Failure, Parser, check_flags
from ..progress import Bar
from ..vm import machine
from ..vm.emulated import VmFailure
from ..vm.options import amount
from . import boots, catalogue, contenders, drives, jobs, journal, native, pages, report, results, summary, table


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line of the benchmark."""
    parser = Parser(prog="bench", description=__doc__, allow_abbrev=False)
    profiles = ", ".join(drives.PROFILES)
    parser.add_argument("--only", action="append", default=[], help="loads to run, as scenario/place/mode with * and ?")
    parser.add_argument("--pairs", type=positive, default=10, help="boots of each variant (default: %(default)s)")
    parser.add_argument("--drive", help=f"all loads on this drive: {profiles}, or limits like bps=1G,iops=600")
    parser.add_argument("--mem", type=size, help="memory of the guest (default: as each load says)")
    parser.add_argument("--native", nargs="?", const="1", metavar="1", help="in user-mode Linux, on the real CPU")
    parser.add_argument("--cpus", type=positive, help="CPUs of the guest")
    parser.add_argument("--dry-run", action="store_true", help="say what would run and how long, touch nothing")
    parser.add_argument("--report", type=Path, help="where the report goes (below build/: bench or native)")
    options = parser.parse_args(arguments)
    check_flags(options, "native")
    options.drive = drives.parse(options.drive) if options.drive else None
    return options


def positive(text: str) -> int:
    """A number of pairs, of CPUs or of times, for argparse: another word is an error that names the option."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def size(text: str) -> str:
    """Memory of a guest, like 1G."""
    amount(text)
    return text


@dataclass
class Bench:
    """A benchmark under way. How many pairs there are is settled before the first."""

    vm: boots.Machine
    loads: list[catalogue.Load]
    pairs: int
    done: list[boots.Boot] = field(default_factory=list)
    measurements: list[results.Measurement] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def run(self, kept: journal.Journal) -> None:
        """Pair after pair, of a boot of each core; which one is first, and which mode, alternates."""
        parts = self.vm.share_out(self.loads)
        total = self.pairs * len(self.vm.variants) * (len(self.loads) + 2 * len(parts))
        with Bar(table.many("load", len(self.loads)), total, interval=10) as bar:
            for number in range(1, self.pairs + 1):
                for together in parts:
                    planned = catalogue.keeping(catalogue.in_turn(together, number))
                    for variant in self.vm.variants[:: 1 if number % 2 else -1]:
                        self._boot(boots.Boot(number, variant, planned), kept, bar)

    def _boot(self, boot: boots.Boot, kept: journal.Journal, bar: Bar) -> None:
        """One boot, or what is kept of it."""
        if kept.has(boot):
            bar.advance(len(boot.loads) + 2)
        else:
            boots.run(self.vm, boot, bar)
            kept.save(boot)
        self.done.append(boot)
        found, problems = results.sift(results.read_lines(boot.output), boot.loads, boot.pair, boot.variant)
        self.measurements += found
        self.problems += problems

    def notes(self) -> list[str]:
        """What is missing, and what else there is to know."""
        measured = {m.load for m in self.measurements}
        missing = [load.name for load in self.loads if load.name not in measured]
        notes = self.vm.notes() + ([f"Nothing could be measured of {', '.join(missing)}."] if missing else [])
        deaths = sum(boot.facts["qemu_deaths"] for boot in self.done)
        if deaths:
            notes.append(f"QEMU died in {deaths} of {len(self.done) + deaths} boots; they were tried again.")
        return notes + [f"partial: {problem}" for problem in dict.fromkeys(self.problems)]


def announce(bench: Bench, dry_run: bool = False) -> None:
    """What will run, and how long it will take."""
    minutes = round(bench.pairs * len(bench.vm.variants) * bench.vm.seconds(bench.loads) / 60)
    names = ", ".join(map(contenders.title, bench.vm.variants))
    what = f"{table.many('load', len(bench.loads))} on {names}: {table.many('pair', bench.pairs)} of boots"
    print(f"{what}, about {table.many('minute', max(1, minutes))}", file=sys.stderr, flush=True)
    for load in bench.loads if dry_run else []:
        print(f"{load.name}, {load.drive}: {load.scenario.title}, {load.moved / 1e6:.0f} MB")


def main(arguments: list[str]) -> int:
    """Measure, print, write the report."""
    machine.polite()
    options = parse(arguments)
    vm = native.Native() if options.native else boots.Machine()
    if options.cpus:
        vm = replace(vm, cpus=options.cpus)
    loads = vm.select(catalogue.matrix(options.only), options.drive)
    bench = Bench(vm, [replace(load, mem=options.mem or load.mem) for load in loads], options.pairs)
    announce(bench, options.dry_run)
    if options.dry_run:
        return 0
    command = " ".join(["make bench" if not arguments else "python3 -m rust_writeback bench", *arguments])
    return carry_out(bench, options.report or paths.BUILD / vm.report, command)


def carry_out(bench: Bench, folder: Path, command: str) -> int:
    """Build, measure what was not measured yet, and report; a benchmark that is finished begins anew next time."""
    fio = jobs.version()
    bench.vm.ensure()
    begin = time.monotonic()
    with steps.only_one("bench"):
        kept = journal.Journal(folder / "raw", journal.fingerprint(bench.vm, bench.loads, bench.pairs))
        ended = False
        try:
            bench.run(kept)
            ended = True
        except VmFailure as failure:
            if not bench.measurements:
                raise
            bench.problems.append(f"{failure}; the same command goes on from there")
        finish(bench, folder, {**boots.describe(fio, bench.done, bench.loads), "command": command}, begin)
        if ended:
            kept.close()
        return 1 if bench.problems else 0


def finish(bench: Bench, folder: Path, setup: dict[str, Any], begin: float) -> None:
    """Print the report and write it; what could not be measured is told first."""
    for problem in dict.fromkeys(bench.problems):
        print(f"partial: {problem}", file=sys.stderr)
    if not bench.measurements:
        raise Failure("nothing could be measured; the lines above say why")
    names, variants = [load.name for load in bench.loads], bench.vm.variants
    ordered = sorted(bench.measurements, key=lambda m: (names.index(m.load), variants.index(m.variant), m.pair))
    shown, beside = bench.vm.shown(ordered), summary.beside(ordered)
    groups = summary.summarize(shown, summary.FULL)
    setup |= {"variants": list(dict.fromkeys(m.variant for m in shown)), "seconds": round(time.monotonic() - begin)}
    setup |= bench.vm.about()
    told = report.Report(setup, [boot.facts for boot in bench.done], shown, groups, beside, bench.notes(), bench.vm)
    tables.show(pages.render("report.md", report=told))
    report.write(folder, told)
    place = os.path.relpath(folder / "index.html", paths.PROJECT)
    print(f"{setup['seconds']} s, {setup['accelerator']}; the report is {place}")
