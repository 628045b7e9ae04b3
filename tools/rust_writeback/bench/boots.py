# SPDX-License-Identifier: GPL-2.0
"""One boot of one variant under load, and what is known of it afterwards."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from .. import paths, vm
from ..errors import Failure
from ..progress import Bar
from ..vmoptions import amount
from . import jobs, report, results
from .catalogue import Load
from .variants import Variant

BOOT_SECONDS, STEP_SECONDS = 12.0, 1.5
"""What a boot, and a step beside its load, takes an emulated guest."""

DRIVER = paths.TOOLS / "guest"
"""The folder that the guest gets; the package in it is bench."""


@dataclass(frozen=True)
class Machine:
    """The virtual machine that all boots of a comparison have."""

    counted: ClassVar[bool] = False
    """Is its time a count of instructions, so that one boot says all?"""
    words: ClassVar[report.Words] = report.Words()

    mem: str = "192M"
    bps: str = "112M"
    iops: str | None = None
    """requests a second that the drive takes; as many as there are if None"""
    size: str = "2G"
    interval: float = 0.1
    """seconds between samples"""

    def check(self, scenarios: Sequence[jobs.Scenario]) -> None:
        """A load that fits into memory says nothing about writing it back."""
        for scenario in scenarios:
            if scenario.footprint <= amount(self.mem):
                raise Failure(f"{scenario.name} fits into {self.mem} of memory; give the guest less with --mem", 2)

    @property
    def drive(self) -> str:
        """What is written to."""
        requests = f" and {self.iops} requests/s" if self.iops else ""
        return f"an emulated NVMe drive limited to {self.bps}iB/s{requests}"

    def options(self, core: str) -> vm.VmOptions:
        """One boot of it."""
        drive = vm.NvmeOptions(size=self.size, bps=self.bps, iops=self.iops)
        return vm.VmOptions(core=core, smp=2, mem=self.mem, nvme=drive, share=DRIVER)

    def command(self, plan: Mapping[str, Any], pair: int) -> list[str]:
        """What runs in the guest."""
        return ["sh", "-c", 'cd /share && exec python3 -B -m bench "$1"', "bench", results.to_text(plan)]

    def share_out(self, loads: Sequence[Load]) -> list[list[Load]]:
        """The loads of each boot: all of one place."""
        places = dict.fromkeys(load.place for load in loads)
        return [[load for load in loads if load.place == place] for place in places]

    def seconds(self, loads: Sequence[Load]) -> float:
        """How long the boots of one variant may take."""
        a_boot = BOOT_SECONDS * len(self.share_out(loads))
        return a_boot + sum(STEP_SECONDS + load.moved / amount(self.bps) for load in loads)


@dataclass
class Boot:
    """A boot's output, however far it came."""

    pair: int
    variant: Variant
    place: str
    steps: list[results.Step]
    output: bytes = b""
    facts: dict[str, Any] = field(default_factory=dict)
    part: int = 0
    """one more for each guest that died before the plan's end"""

    @property
    def name(self) -> str:
        """As its raw file is called."""
        place = self.place if len(self.steps) != 1 else "-".join((*self.steps[0].key, self.place))
        return f"{self.pair}-{place}-{self.variant.name}" + (f"-{self.part}" if self.part else "")

    @property
    def title(self) -> str:
        """As a sentence calls it."""
        return f"boot of {self.variant.name}, pair {self.pair}"

    def known(self) -> dict[str, Any]:
        """What a report tells of it."""
        lines = results.read_lines(self.output)
        return {
            "pair": self.pair,
            "variant": self.variant.name,
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


def run(machine: Machine, boot: Boot, bar: Bar) -> None:
    """Boot, and run all steps. What the guest said is kept in the boot even if it dies."""
    plan = {
        "steps": [step.plan(boot.variant) for step in boot.steps],
        "interval": machine.interval,
        "file_system": boot.place,
    }
    stream = Stream(bar)
    core = boot.variant.core
    begin = time.monotonic()
    try:
        result = vm.run(machine.options(core), machine.command(plan, boot.pair), stdout=stream)
    finally:
        boot.output = bytes(stream.data)
    if result.core != core:
        raise Failure(f"the kernel ran the {result.core} core instead of {core}; the run is not reported")
    if result.status and b'"kind": "refused"' not in stream.data:
        said = result.stderr.decode(errors="replace").strip().splitlines()
        raise Failure(f"the guest's driver ended with status {result.status}: {said[-1] if said else result.console}")
    boot.facts = {
        "seconds": round(time.monotonic() - begin, 1),
        "boot_seconds": round(result.boot_seconds, 1),
        "accelerator": result.accel,
        "kernel": result.kernel,
        "kernel_warned": result.warned,
        "qemu_command": result.qemu_command,
        "qemu_version": result.qemu_version,
    }


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


def describe(machine: Machine, fio: str, boots: Sequence[dict[str, Any]], loads: Sequence[Any]) -> dict[str, Any]:
    """All that somebody needs who wants to repeat the run. Boots that were cut short know less."""
    begun = [boot for boot in boots if boot["guest"]]
    if len({boot["accelerator"] for boot in begun if "accelerator" in boot}) > 1:
        raise Failure("the boots had different accelerators; the run is not reported")
    first = next((boot for boot in begun if "accelerator" in boot), begun[0])
    scenarios = list({load.scenario.name: load.scenario for load in loads}.values())
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "revision": revision(),
        "pairs": max(boot["pair"] for boot in boots),
        "variants": list(dict.fromkeys(boot["variant"] for boot in boots)),
        "kernel": first["guest"]["kernel"],
        "kernel_command_lines": {boot["variant"]: boot["guest"]["cmdline"] for boot in begun},
        "fio": fio,
        "qemu": first.get("qemu_version", "unknown"),
        "accelerator": first.get("accelerator", "unknown"),
        "cpus": first["guest"]["cpus"],
        "memory": machine.mem,
        "memory_seen_by_the_guest_bytes": first["guest"]["memory"],
        "drive": machine.drive,
        "counted": machine.counted,
        "places": ", ".join(dict.fromkeys(load.place for load in loads)),
        "sampling_interval_seconds": machine.interval,
        "host_cpu": host_cpu(),
        "host_cpus": os.cpu_count(),
        "host_kernel": platform.release(),
        "host_load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "modes": jobs.MODES,
        "scenarios": [
            {
                "name": scenario.name,
                "title": scenario.title,
                "jobs": scenario.jobs,
                "bytes_written": scenario.written,
                "bytes_of_files": scenario.footprint,
                "text": scenario.text,
            }
            for scenario in scenarios
        ],
    }
