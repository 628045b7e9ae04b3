# SPDX-License-Identifier: GPL-2.0
"""make bench TARGET=...: the same loads on the machine's own kernel and drive, without a guest.

The kernel has one core, chosen at boot, or none of ours, so the benchmark compares the modes. In place of a boot
there is a round, which runs every load once. The mode that comes first alternates. The benchmark writes only to a
folder that was made for this, or to a device that the user gave away.
"""

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from .. import paths
from ..errors import Failure, Parser, check_flags
from ..vm import images, machine
from . import boots, catalogue, contenders, full, results, target
from .drives import Drive
from .full import positive
from .target import Target

FACTOR = 4
"""What the sizes of the job files, which are a small guest's, are multiplied by."""

SECONDS_OF_A_LOAD = 120
"""What a load may take, multiplied as its size is."""

CLEAN_UP_SECONDS = 4.0
"""What the driver gets after Ctrl-C; tools/enter gives all of us five."""


@dataclass(frozen=True, kw_only=True)
class Hardware(boots.Machine):
    """The machine itself."""

    heading: ClassVar[str] = "DONTCACHE writeback on real hardware"
    caveat: ClassVar[str] = "A boot is a round of all loads here, and dirty memory is that of the whole machine."
    pairs_of: ClassVar[str] = "rounds"
    boot_seconds: ClassVar[float] = 0.0
    rate: ClassVar[float] = 500e6
    where: Target
    factor: int
    left_out: tuple[str, ...]

    def plan(self, boot: boots.Boot) -> dict[str, Any]:
        """What the driver is to do."""
        return {**super().plan(boot), "machine": {"seconds": SECONDS_OF_A_LOAD * self.factor}, **self.where.plan()}

    def boot(self, boot: boots.Boot, stream: boots.Stream) -> dict[str, Any]:
        """One round."""
        run_driver(self.plan(boot), stream)
        return {"accelerator": "real hardware", "qemu_version": "none", "qemu_deaths": 0}

    def ensure(self) -> None:
        """Build our own program of loads."""
        images.ensure_program(images.LOAD_SOURCE, images.LOAD)

    @property
    def image(self) -> str:
        """What distinguishes the machine and its kernel from others."""
        return " ".join(os.uname())

    def shown(self, measurements: list[results.Measurement]) -> list[results.Measurement]:
        """The modes, which are compared, are the variants of the tables."""
        return [replace(m, variant=m.mode, mode=contenders.KERNEL) for m in measurements]

    def ran(self, setup: Mapping[str, Any]) -> str:
        """What ran the kernel."""
        return f"{setup['host_cpu']}, the sizes of the job files times {setup['size_factor']}"

    def about(self) -> dict[str, Any]:
        """The target, and what was done with it."""
        core = contenders.title(self.variants[0])
        return {"target": self.where.name, "drives": target.drive(self.where), "size_factor": self.factor, "core": core}

    def notes(self) -> list[str]:
        """What is missing, and how a load began."""
        return [
            *(f"left out: {text}." for text in self.left_out),
            "Files were taken out of the page cache by posix_fadvise(DONTNEED) before each load, and synced one by one:"
            " what else was cached stayed.",
        ]


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
    loads = catalogue.select(place, factor)
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


def run_driver(plan: dict[str, Any], stream: Callable[[bytes], None]) -> None:
    """Run the driver. It is in a session of its own, so that Ctrl-C reaches it once, through us."""
    # A server gets a network of its own: it ends with it, however that is, and meets no client from outside.
    network = ["unshare", "--net"] if plan["file_system"] == catalogue.NFS else []
    command = [*network, "python3", "-B", "-m", "bench", json.dumps(plan)]
    environment = {**os.environ, "PATH": f"{images.LOAD.parent}:{os.environ['PATH']}"}
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, cwd=boots.DRIVER, stdin=nothing, stdout=pipe, start_new_session=True
    ) as process:
        assert process.stdout
        try:
            for line in process.stdout:
                stream(line)
        except BaseException:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(CLEAN_UP_SECONDS)
            process.kill()
            raise
    if process.returncode not in (0, 1):
        raise Failure(f"the driver ended with status {process.returncode}")


def main(arguments: list[str]) -> int:
    """Check, measure, print, write the report."""
    machine.polite()
    options = parse(arguments)
    where = target.find(bool(options.destructive))
    if options.place:
        where = target.served(where)
    variants = (target.active_core() or contenders.KERNEL,)
    loads, left_out = loads_of(where, options.only, options.size)
    real = Hardware(where=where, variants=variants, factor=options.size, left_out=tuple(left_out))
    bench = full.Bench(real, loads, options.pairs)
    full.announce(bench, options.dry_run)
    written = options.pairs * sum(load.scenario.at_most_written for load in loads) / 1e9
    print(f"up to {written:.1f} GB written to {where.name} ({where.place})", file=sys.stderr, flush=True)
    if options.dry_run:
        return 0
    where.check(any(section.uncached(load.mode) for load in loads for section in load.scenario.sections))
    where.check_room(loads)
    command = f"make bench TARGET={shlex.quote(where.name)} ARGS={shlex.quote(shlex.join(arguments))}"
    return full.carry_out(bench, options.report, command)
