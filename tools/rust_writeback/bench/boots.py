# SPDX-License-Identifier: GPL-2.0
"""Runs loads in one boot of one variant, and collects the results."""

from __future__ import annotations

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
from . import report, results
from .catalogue import Load, NFS
from .drives import Drive

BOOT_SECONDS, STEP_SECONDS = 12.0, 1.5
"""What a boot, and a step beside its load, takes an emulated guest."""

GRACE_SECONDS = 10.0
"""For how long an NFS server waits for clients of before."""

SLOWNESS = 1.5
"""How much longer an emulated CPU takes for a load than the drive's limit of bytes makes it."""

FAST_RATE = 200e6
"""Bytes a second that an emulated CPU copies, where the drive is no limit."""

FLUSH_US = 1000
"""What a flush of an emulated drive takes. Its cache is volatile, as that of a guest's own drive is."""

DRIVER = paths.TOOLS / "guest"
"""The folder that the guest gets; the package in it is bench."""

KEEPING = 16
"""One byte in so many of what is held in memory is the kernel's own need for it."""


@dataclass(frozen=True)
class Machine:
    """The virtual machine that all boots of a comparison have."""

    words: ClassVar[report.Words] = report.Words()
    report: ClassVar[str] = "bench"
    """the folder below build/ for its reports"""

    cpus: int = 2
    size: str = "2G"
    """of an emulated drive"""
    size_in_memory: str = "1280M"
    interval: float = 0.1
    """seconds between samples"""

    def select(self, loads: Sequence[Load], drive: Drive | None) -> list[Load]:
        """The loads that can be run on it, on their own drives or all on this one."""
        return [replace(load, drive=drive) for load in loads] if drive else list(loads)

    def held(self, drive: Drive) -> int:
        """The bytes of memory that the guest has besides what its loads get."""
        size = amount(self.size_in_memory) if drive.in_memory else 0
        return size + size // KEEPING

    def options(self, boot: Boot) -> emulated.VmOptions:
        """One boot of it."""
        drive, mem = boot.drive, amount(boot.mem) + self.held(boot.drive)
        nvme = None if drive.in_memory else emulated.NvmeOptions(size=self.size, bps=drive.bps, iops=drive.iops)
        return emulated.VmOptions(
            core=boot.variant, smp=self.cpus, mem=f"{mem >> 20}M", nvme=nvme, share=DRIVER, flush_us=FLUSH_US
        )

    def plan(self, boot: Boot) -> dict[str, Any]:
        """What the guest is to do."""
        plan = {
            "steps": [step.plan() for step in boot.steps],
            "interval": self.interval,
            "file_system": boot.place,
        }
        if boot.drive.in_memory:
            plan["drive"] = self.null_block(boot.drive)
        return plan

    def null_block(self, drive: Drive) -> dict[str, int]:
        """What makes a drive in the guest's memory."""
        return {
            "megabytes": amount(self.size_in_memory) >> 20,
            "nanoseconds": drive.latency_ns,
            "depth": drive.depth,
            "kilobytes": drive.kilobytes,
        }

    def command(self, plan: Mapping[str, Any]) -> list[str]:
        """What runs in the guest."""
        return ["sh", "-c", 'cd /share && exec python3 -B -m bench "$1"', "bench", results.to_text(plan)]

    def boot(self, boot: Boot, stream: Stream) -> dict[str, Any]:
        """Boot, and run all steps; what is known of it afterwards."""
        begin = time.monotonic()
        result = emulated.run(self.options(boot), self.command(self.plan(boot)), stdout=stream, again=stream.restart)
        check(boot, stream, result.core, result.status, result.stderr, str(result.console))
        return {
            "seconds": round(time.monotonic() - begin, 1),
            "boot_seconds": round(result.boot_seconds, 1),
            "accelerator": result.accel,
            "kernel": result.kernel,
            "kernel_warned": result.warned,
            "qemu_command": result.qemu_command,
            "qemu_version": result.qemu_version,
            "qemu_deaths": result.deaths,
        }

    def ensure(self) -> None:
        """Build what is booted."""
        kernel.ensure()

    @property
    def image(self) -> Path:
        """What is booted."""
        return paths.BZIMAGE

    def share_out(self, loads: Sequence[Load]) -> list[list[Load]]:
        """The loads of each boot: all of one place, drive and size of memory."""
        rigs = dict.fromkeys((load.place, load.drive, load.mem) for load in loads)
        return [[load for load in loads if (load.place, load.drive, load.mem) == rig] for rig in rigs]

    def load_seconds(self, load: Load) -> float:
        """How long a load may take."""
        rate = amount(load.drive.bps) / SLOWNESS if load.drive.bps else FAST_RATE
        return max(load.moved / rate, 1.3 * load.scenario.paced_seconds)

    def seconds(self, loads: Sequence[Load]) -> float:
        """How long the boots of one variant may take."""
        together = self.share_out(loads)
        begun = BOOT_SECONDS * len(together) + GRACE_SECONDS * sum(part[0].place == NFS for part in together)
        return begun + sum(STEP_SECONDS + self.load_seconds(load) for load in loads)


@dataclass
class Boot:
    """A boot's output, however far it came."""

    pair: int
    variant: str
    steps: list[results.Step]
    output: bytes = b""
    facts: dict[str, Any] = field(default_factory=dict)
    part: int = 0
    """one more for each guest that died before the plan's end"""

    @property
    def place(self) -> str:
        """Where all of its loads run."""
        return self.steps[0].load.place

    @property
    def drive(self) -> Drive:
        """The drive of all of its loads."""
        return self.steps[0].load.drive

    @property
    def mem(self) -> str:
        """The memory that all of its loads have."""
        return self.steps[0].load.mem

    @property
    def name(self) -> str:
        """As its raw file is called."""
        rig = f"{self.place}-{self.drive.name}-{self.mem}"
        rig = rig if len(self.steps) != 1 else "-".join((*self.steps[0].key, rig))
        return f"{self.pair}-{rig}-{self.variant}" + (f"-{self.part}" if self.part else "")

    @property
    def title(self) -> str:
        """As a sentence calls it."""
        return f"boot of {self.variant}, pair {self.pair}"

    def known(self) -> dict[str, Any]:
        """What a report tells of it."""
        lines = results.read_lines(self.output)
        return {
            "pair": self.pair,
            "variant": self.variant,
            "place": self.place,
            **self.facts,
            "guest": next((line for line in lines if line.get("kind") == "guest"), {}),
            "steps": [
                {key: value for key, value in line.items() if key not in ("fio", "samples")}
                for line in lines
                if line.get("kind") in ("step", "refused")
            ],
        }


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


def check(boot: Boot, stream: Stream, core: str, status: int, stderr: bytes, console: str) -> None:
    """A boot that ended well has the right core, and a driver that said why if it was not content."""
    if core != boot.variant:
        raise Failure(f"the kernel ran the {core} core instead of {boot.variant}; the run is not reported")
    if status and b'"kind": "refused"' not in stream.data:
        said = stderr.decode(errors="replace").strip().splitlines()
        raise Failure(f"the guest's driver ended with status {status}: {said[-1] if said else console}")


def run(machine: Machine, boot: Boot, bar: Bar) -> None:
    """Boot, and run all steps. What the guest said is kept in the boot even if it dies."""
    stream = Stream(bar)
    try:
        facts = machine.boot(boot, stream)
    finally:
        boot.output = bytes(stream.data)
    boot.facts = {**facts, **made()}


def made() -> dict[str, Any]:
    """When figures were made, and by what; they keep it when they are told later."""
    return {"date": now(), "revision": revision()}


def setup(command: str, result: emulated.VmResult) -> dict[str, str]:
    """What is to be known of counted figures: how, when, of what and in which machine."""
    machine = {"kernel": result.kernel, "qemu": result.qemu_version, "accelerator": result.accel}
    return {"command": command, **made(), "code": lines.fingerprint(), **machine}


def now() -> str:
    """The time as reports have it."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())


def revision() -> str:
    """The git revision of the project, marked when there is more than it says."""
    command = ["git", "-c", f"safe.directory={paths.PROJECT}", "-C", str(paths.PROJECT)]
    try:
        head = subprocess.run([*command, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
        changed = subprocess.run([*command, "status", "--porcelain"], check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.strip()[:12] + ("+changes" if changed.strip() else "")


def host_cpu() -> str:
    """The name of the host's CPU."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def told_deaths(boots: Sequence[Mapping[str, Any]]) -> list[str]:
    """In how many boots QEMU itself died, if it did."""
    deaths = sum(boot.get("qemu_deaths", 0) for boot in boots)
    return [f"QEMU died in {deaths} of {len(boots) + deaths} boots; they were tried again."] if deaths else []


def describe_loads(loads: Sequence[Load]) -> dict[str, Any]:
    """What a report tells of the loads."""
    scenarios = {load.scenario.name: load for load in loads}
    return {
        "places": ", ".join(dict.fromkeys(load.place for load in loads)),
        "scenarios": [
            {"name": name, "title": load.scenario.title, "text": load.scenario.text} for name, load in scenarios.items()
        ],
    }


def describe(machine: Machine, fio: str, boots: Sequence[dict[str, Any]], loads: Sequence[Load]) -> dict[str, Any]:
    """All that somebody needs who wants to repeat the run. Boots that were cut short know less."""
    begun = [boot for boot in boots if boot["guest"]]
    if len({boot["accelerator"] for boot in begun if "accelerator" in boot}) > 1:
        raise Failure("the boots had different accelerators; the run is not reported")
    first = next((boot for boot in begun if "accelerator" in boot), begun[0])
    return {
        "date": now(),
        "revisions": list(dict.fromkeys(boot["revision"] for boot in boots if "revision" in boot)) or [revision()],
        "pairs": max(boot["pair"] for boot in boots),
        "variants": list(dict.fromkeys(boot["variant"] for boot in boots)),
        "kernel": first["guest"]["kernel"],
        "fio": fio,
        "qemu": first.get("qemu_version", "unknown"),
        "accelerator": first.get("accelerator", "unknown"),
        "cpus": first["guest"]["cpus"],
        "memory": ", ".join(dict.fromkeys(load.mem for load in loads)),
        "drives": ", ".join(dict.fromkeys(str(load.drive) for load in loads)),
        "host_cpu": host_cpu(),
        **describe_loads(loads),
    }
