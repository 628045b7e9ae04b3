# SPDX-License-Identifier: GPL-2.0
"""Runs loads in one boot of one variant, and collects the results."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from .. import paths
from ..build import kernel
from ..check import lines
from ..errors import Failure
from ..progress import Bar
from ..vm import emulated
from ..vm.options import amount
from . import results
from .catalogue import Load
from .contenders import CORES
from .drives import Drive

FLUSH_US = 1000
"""What a flush of an emulated drive takes. Its cache is volatile, as that of a guest's own drive is."""

SIZE, SIZE_IN_MEMORY = "2G", "1280M"
"""Of an emulated drive, and of one in the guest's memory."""

DRIVER = paths.TOOLS / "guest"
"""The folder that the guest gets; the package in it is bench."""

KEEPING = 16
"""One byte in so many of what is held in memory is the kernel's own need for it."""


@dataclass(frozen=True)
class Machine:
    """The virtual machine that all boots of a comparison have."""

    heading: ClassVar[str] = "DONTCACHE writeback: the Rust core beside the C core"
    caveat: ClassVar[str] = "The CPU is emulated, so only ratios are meaningful."
    pairs_of: ClassVar[str] = "boots"
    """what a report says of it"""
    report: ClassVar[str] = "bench"
    """the folder below build/ for its reports"""
    boot_seconds: ClassVar[float] = 12.0
    """what a boot takes beside its loads"""
    rate: ClassVar[float] = 90e6
    """the bytes a second of a load, about"""

    cpus: int = 2
    interval: float = 0.1
    """seconds between samples"""
    variants: tuple[str, ...] = CORES

    def select(self, loads: Sequence[Load], drive: Drive | None) -> list[Load]:
        """The loads that can be run on it, on their own drives or all on this one."""
        return [replace(load, drive=drive) for load in loads] if drive else list(loads)

    def mem(self, boot: Boot) -> str:
        """The memory of the guest: what its loads get, and what its drive needs."""
        size = amount(SIZE_IN_MEMORY) if boot.rig.drive.latency_ns else 0
        return f"{(amount(boot.rig.mem) + size + size // KEEPING) >> 20}M"

    def plan(self, boot: Boot) -> dict[str, Any]:
        """What the guest is to do."""
        plan = {"steps": [load.plan() for load in boot.loads], "interval": self.interval, "file_system": boot.rig.place}
        if boot.rig.drive.latency_ns:
            plan["drive"] = {"megabytes": amount(SIZE_IN_MEMORY) >> 20, "nanoseconds": boot.rig.drive.latency_ns}
        return plan

    def command(self, plan: Mapping[str, Any]) -> list[str]:
        """What runs in the guest."""
        return ["sh", "-c", 'cd /share && exec python3 -B -m bench "$1"', "bench", json.dumps(plan)]

    def options(self, boot: Boot) -> emulated.VmOptions:
        """One boot of it."""
        drive = boot.rig.drive
        nvme = None if drive.latency_ns else emulated.NvmeOptions(size=SIZE, bps=drive.bps, iops=drive.iops)
        return emulated.VmOptions(
            core=boot.variant, smp=self.cpus, mem=self.mem(boot), nvme=nvme, share=DRIVER, flush_us=FLUSH_US
        )

    def boot(self, boot: Boot, stream: Stream) -> dict[str, Any]:
        """Boot, and run all steps; what is known of it afterwards."""
        command = self.command(self.plan(boot))
        return judged(boot, stream, emulated.run(self.options(boot), command, stdout=stream, again=stream.restart))

    def shown(self, measurements: list[results.Measurement]) -> list[results.Measurement]:
        """The measurements as the tables have them."""
        return measurements

    def ran(self, setup: Mapping[str, Any]) -> str:
        """What ran the kernel."""
        return f"QEMU {setup['qemu']}, accelerator {setup['accelerator']}"

    def about(self) -> dict[str, Any]:
        """What a report tells of the machine besides."""
        return {}

    def notes(self) -> list[str]:
        """What else there is to know."""
        return []

    def ensure(self) -> None:
        """Build what is booted."""
        kernel.ensure()

    @property
    def image(self) -> Path | str:
        """What is booted, or a name of it."""
        return paths.BZIMAGE

    def share_out(self, loads: Sequence[Load]) -> list[list[Load]]:
        """The loads of each boot: all of one place, drive and size of memory."""
        rigs = dict.fromkeys((load.place, load.drive, load.mem) for load in loads)
        return [[load for load in loads if (load.place, load.drive, load.mem) == rig] for rig in rigs]

    def seconds(self, loads: Sequence[Load]) -> float:
        """How long the boots of one variant may take."""
        return self.boot_seconds * len(self.share_out(loads)) + sum(load.seconds(self.rate) for load in loads)


@dataclass
class Boot:
    """A boot, or what stands for it on real hardware: what is to run, and what came of it."""

    pair: int
    variant: str
    loads: list[Load]
    output: bytes = b""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def rig(self) -> Load:
        """One of its loads: all have the same place, drive and memory."""
        return self.loads[0]

    @property
    def name(self) -> str:
        """As its raw file is called."""
        return f"{self.pair}-{self.rig.place}-{self.rig.drive.name}-{self.rig.mem}-{self.variant}"

    @property
    def guest(self) -> dict[str, Any]:
        """What the driver says of the machine before the first load, if it came so far."""
        line: dict[str, Any] = json.loads(self.output.partition(b"\n")[0] or b"{}")
        return line if line.get("kind") == "guest" else {}


class Stream:
    """Collects the guest's output and counts its lines as they come."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.data = bytearray()

    def __call__(self, data: bytes) -> None:
        self.data += data
        self.bar.advance(data.count(b"\n"))

    def restart(self, _failure: emulated.VmFailure) -> None:
        """Forget a boot that begins anew."""
        self.bar.advance(-self.data.count(b"\n"))
        self.data.clear()


def run(machine: Machine, boot: Boot, bar: Bar) -> None:
    """Boot, and run all steps."""
    stream, begin = Stream(bar), time.monotonic()
    facts = machine.boot(boot, stream)
    boot.output = bytes(stream.data)
    about = {"pair": boot.pair, "variant": boot.variant, "place": boot.rig.place}
    boot.facts = {**about, "seconds": round(time.monotonic() - begin, 1), **facts, **made()}


def judged(boot: Boot, stream: Stream, result: emulated.VmResult) -> dict[str, Any]:
    """What is known of a guest that had the right core, and a driver that said why if it was not content."""
    if result.core != boot.variant:
        raise Failure(f"the kernel ran the {result.core} core instead of {boot.variant}; the run is not reported")
    if result.status and b'"kind": "refused"' not in stream.data:
        said = result.stderr.decode(errors="replace").strip().splitlines()
        raise Failure(f"the guest's driver ended with status {result.status}: {said[-1] if said else result.console}")
    return {"accelerator": result.accel, "qemu_version": result.qemu_version, "qemu_deaths": result.deaths}


def made() -> dict[str, Any]:
    """When figures were made, and by what; they keep it when they are told later."""
    return {"date": now(), "revision": revision(), "code": lines.fingerprint(), "host_cpu": host_cpu()}


def setup(command: str, result: emulated.VmResult) -> dict[str, str]:
    """What is to be known of counted figures: how, when, of what and in which machine."""
    machine = {"kernel": result.kernel, "qemu": result.qemu_version, "accelerator": result.accel}
    return {"command": command, **made(), **machine}


def now() -> str:
    """The time as reports have it."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())


def revision() -> str:
    """The git revision of the project, marked when there is more than it says."""

    def git(*arguments: str) -> str:
        command = ["git", "-c", f"safe.directory={paths.PROJECT}", "-C", str(paths.PROJECT), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    try:
        return git("rev-parse", "HEAD")[:12] + ("+changes" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def host_cpu() -> str:
    """The name of the host's CPU."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def describe(fio: str, boots: Sequence[Boot], loads: Sequence[Load]) -> dict[str, Any]:
    """All that somebody needs who wants to repeat the run."""
    accelerators = {boot.facts["accelerator"] for boot in boots}
    if len(accelerators) > 1:
        raise Failure("the boots had different accelerators; the run is not reported")
    guest = next(boot.guest for boot in boots if boot.guest)
    scenarios = {load.scenario.name: load.scenario for load in loads}.values()
    return {
        "date": now(),
        "revisions": list(dict.fromkeys(boot.facts["revision"] for boot in boots)),
        "code": boots[-1].facts["code"],
        "pairs": max(boot.pair for boot in boots),
        "kernel": guest["kernel"],
        "fio": fio,
        "qemu": boots[0].facts["qemu_version"],
        "accelerator": accelerators.pop(),
        "cpus": guest["cpus"],
        "memory": ", ".join(dict.fromkeys(load.mem for load in loads)),
        "drives": ", ".join(dict.fromkeys(str(load.drive) for load in loads)),
        "host_cpu": host_cpu(),
        "places": ", ".join(dict.fromkeys(load.place for load in loads)),
        "scenarios": [{"name": one.name, "title": one.title, "text": one.text} for one in scenarios],
    }
