# SPDX-License-Identifier: GPL-2.0
"""make bench TARGET=...: the same loads on the machine's own kernel and drive, without a guest.

A round runs every load once. The mode that comes first alternates. The kernel has one core, chosen at boot, or
none of ours, so the benchmark compares the modes. It writes only to a folder that was made for this, or to a
device that the user gave away.
"""

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import paths, steps
from ..errors import Failure, Parser, check_flags
from ..progress import Bar
from ..vm import images, machine
from . import boots, catalogue, contenders, jobs, journal, report, results, summary, table, target
from .drives import Drive
from .full import need_results, positive, tell
from .target import Target

FACTOR = 4
"""What the sizes of the job files, which are a small guest's, are multiplied by."""

RATE = 500e6
"""Bytes a second that the estimate of the time takes for granted."""

SETTLE_SECONDS = 1.0
"""What a load takes beside what it moves: to begin cold, and fio's start."""

SECONDS_OF_A_LOAD = 120
"""What a load may take, multiplied as its size is."""

CLEAN_UP_SECONDS = 4.0
"""What the driver gets after Ctrl-C; tools/enter gives all of us five."""

INTERVAL = 0.1


class Words(report.Words):
    """What a report says of real hardware."""

    heading = "DONTCACHE writeback on real hardware"
    pairs_of = "rounds"
    emulated = "A boot is a round of all loads here, and dirty memory is that of the whole machine."

    def machine(self, setup: dict[str, Any]) -> str:
        """What ran the kernel."""
        return f"{setup['host_cpu']}, the sizes of the job files times {setup['size_factor']}"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line of the benchmark on real hardware."""
    parser = Parser(prog="bench-target", description=__doc__, allow_abbrev=False)
    parser.add_argument("--only", action="append", default=[], help="loads to run, as scenario/place/mode with * and ?")
    parser.add_argument("--place", choices=[catalogue.NFS], help="through an NFS server of this machine, as root")
    parser.add_argument("--pairs", type=positive, default=10, help="rounds (default: %(default)s)")
    parser.add_argument("--size", type=positive, default=FACTOR, help="times the job files' sizes (default: %(default)s)")
    parser.add_argument("--destructive", nargs="?", const="1", metavar="1", help="write over a block device")
    parser.add_argument("--dry-run", action="store_true", help="say what would run and how long, run nothing")
    parser.add_argument("--report", type=Path, default=paths.BUILD / "bench-target", help="where the report goes")
    options = parser.parse_args(arguments)
    check_flags(options, "destructive")
    return options


def loads_of(where: Target, only: Sequence[str], factor: int) -> tuple[list[catalogue.Load], list[str]]:
    """The loads that this machine can run; and, in a line each, what is left out because something is not there."""
    # A file system that the catalogue does not know runs the loads that all of them do.
    place = where.place if where.place in catalogue.PLACES else "ext4"
    loads = catalogue.select(place, catalogue.ALL_MODES, catalogue.NAMES, factor)
    drive, mem = Drive("target"), f"{os.sysconf('SC_PHYS_PAGES') * results.PAGE / 2**30:.1f}GiB"
    chosen = catalogue.matching([replace(load, place=where.place, drive=drive, mem=mem) for load in loads], only)
    left_out = ["CPU of workers: the build root has process numbers of its own, in which no kernel thread is seen"]
    if not target.active_core():
        left_out.append("the counter, after a load and while it runs: no core of ours, or only root may look at it")
    if not where.sys.exists():
        left_out.append(f"what the device moved: the files of {where.place} have no device of their own")
    fit = [load for load in chosen if not load.entry.touched and not load.entry.sysctls]
    if len(fit) < len(chosen):
        left_out.append("the loads that use three quarters of the memory or other dirty limits: these are the machine's own")
    if not fit:
        raise Failure(f"nothing is left to run ({'; '.join(left_out)})", 2)
    return fit, left_out


@dataclass
class Hardware:
    """A benchmark under way."""

    where: Target
    loads: list[catalogue.Load]
    variant: str
    """the kernel that runs; another one takes a boot"""
    pairs: int
    factor: int
    left_out: list[str] = field(default_factory=list)
    rounds: list[boots.Boot] = field(default_factory=list)
    measurements: list[results.Measurement] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    given_up: set[str] = field(default_factory=set)
    """loads that could not be measured once"""

    def run(self, kept: journal.Journal) -> None:
        """Round after round; which mode is first alternates."""
        total = self.pairs * (len(self.loads) + 2)
        with Bar(table.many("load", len(self.loads)), total, interval=10) as bar:
            for number in range(1, self.pairs + 1):
                left = [load for load in self.loads if load.name not in self.given_up]
                if left:
                    planned = results.plan(catalogue.in_turn(left, number))
                    self._round(boots.Boot(number, self.variant, planned), kept, bar)

    def _round(self, one: boots.Boot, kept: journal.Journal, bar: Bar) -> None:
        if kept.has(one):
            bar.advance(len(one.steps) + 2)
        else:
            begin = time.monotonic()
            one.output = run_driver(self._plan(one), bar)
            one.facts = {"seconds": round(time.monotonic() - begin, 1), **boots.made()}
            one.facts |= {"accelerator": "real hardware", "qemu_version": "none"}
            kept.save(one)
        lines = results.read_lines(one.output)
        found = results.sift(lines, one.steps, one.pair, one.variant, f"round {one.pair}")
        measured = {(m.scenario.partition(": ")[0], m.mode) for m in found.measurements}
        self.given_up |= {step.load.name for step in one.steps if step.key not in measured}
        self.rounds.append(one)
        self.measurements += found.measurements
        self.problems += found.problems

    def _plan(self, one: boots.Boot) -> dict[str, Any]:
        """What the driver is to do."""
        return {
            "steps": [step.plan() for step in one.steps],
            "interval": INTERVAL,
            "machine": {"seconds": SECONDS_OF_A_LOAD * self.factor},
            **self.where.plan(),
        }

    def notes(self) -> list[str]:
        """Why it ended where it did, and what is missing."""
        notes = [f"left out: {text}." for text in self.left_out]
        notes.append(
            "Files were taken out of the page cache by posix_fadvise(DONTNEED) before each load, and synced one by one:"
            " what else was cached stayed."
        )
        if self.given_up:
            notes.append(f"Given up: {', '.join(sorted(self.given_up))}. What is over too soon takes a larger SIZE.")
        return notes + [f"partial: {problem}" for problem in dict.fromkeys(self.problems)]


def run_driver(plan: dict[str, Any], bar: Bar) -> bytes:
    """Run the driver: its lines.

    It is in a session of its own, so that Ctrl-C reaches it once, through us.
    """
    output = bytearray()
    # A server gets a network of its own: it ends with it, however that is, and meets no client from outside.
    network = ["unshare", "--net"] if plan["file_system"] == catalogue.NFS else []
    command = [*network, "python3", "-B", "-m", "bench", results.to_text(plan)]
    images.ensure_program(images.LOAD_SOURCE, images.LOAD)
    environment = {**os.environ, "PATH": f"{images.LOAD.parent}:{os.environ['PATH']}"}
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, cwd=boots.DRIVER, stdin=nothing, stdout=pipe, start_new_session=True
    ) as process:
        assert process.stdout
        try:
            for line in process.stdout:
                output += line
                bar.advance()
        except BaseException:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(CLEAN_UP_SECONDS)
            process.kill()
            raise
    if process.returncode not in (0, 1):
        raise Failure(f"the driver ended with status {process.returncode}")
    return bytes(output)


def announce(bench: Hardware) -> None:
    """What will run, what it writes, and how long it will take."""
    grace = boots.GRACE_SECONDS if bench.where.place == catalogue.NFS else 0
    seconds = grace + sum(SETTLE_SECONDS + load.seconds(RATE) for load in bench.loads)
    written = sum(load.scenario.at_most_written for load in bench.loads)
    print(
        f"{table.many('load', len(bench.loads))} on {bench.where.name} ({bench.where.place}):"
        f" {table.many('round', bench.pairs)}, in all about {bench.pairs * seconds / 60:.1f} minutes"
        f" at {RATE / 1e6:.0f} MB/s and up to {bench.pairs * written / 1e9:.1f} GB written",
        file=sys.stderr,
        flush=True,
    )


def main(arguments: list[str]) -> int:
    """Check, measure, print, write the report."""
    machine.polite()
    options = parse(arguments)
    where = target.find(bool(options.destructive))
    if options.place:
        where = target.served(where)
    variant = target.active_core() or contenders.KERNEL
    loads, left_out = loads_of(where, options.only, options.size)
    bench = Hardware(where, loads, variant, options.pairs, options.size, left_out)
    announce(bench)
    if options.dry_run:
        for line in (f"{load.name}: {load.scenario.title}, {load.moved / 1e6:.0f} MB" for load in loads):
            print(line)
        return 0
    fio = jobs.version()
    where.check(any(section.uncached(load.mode) for load in loads for section in load.scenario.sections))
    where.check_room(results.plan(loads))
    with steps.only_one("bench-target"):
        begin = time.monotonic()
        kept = journal.Journal(options.report / "raw", fingerprint(bench))
        bench.run(kept)
        need_results(bench.measurements, bench.problems)
        ordered = results.in_order(bench.measurements, loads, [variant])
        # The modes, which are compared, are the variants of the tables.
        shown = [replace(m, variant=m.mode, mode=contenders.KERNEL) for m in ordered]
        setup = boots.describe(fio, bench.rounds, loads, list(dict.fromkeys(m.variant for m in shown)))
        setup |= {"target": where.name, "drives": target.drive(where), "size_factor": options.size, "core": contenders.title(variant)}
        setup["command"] = command(bench, arguments)
        known = [one.known() for one in bench.rounds]
        tell(setup, known, shown, summary.beside(ordered), bench.notes(), Words(), options.report, begin)
        kept.close()
        return 1 if bench.problems else 0


def command(bench: Hardware, arguments: Sequence[str]) -> str:
    """What somebody types who wants the same."""
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--size")
    parser.add_argument("--destructive", nargs="?")
    _, rest = parser.parse_known_args(arguments)
    given = {"TARGET": bench.where.name, "SIZE": str(bench.factor), "DESTRUCTIVE": "1" if bench.where.bare else ""}
    given["ARGS"] = shlex.join(rest)
    return " ".join(["make bench", *(f"{name}={shlex.quote(value)}" for name, value in given.items() if value)])


def fingerprint(bench: Hardware) -> str:
    """What two rounds must have in common to be of one benchmark."""
    about = repr((bench.where, bench.variant, bench.pairs))
    return steps.digest(about, " ".join(os.uname()), *map(repr, bench.loads), *journal.driver())
