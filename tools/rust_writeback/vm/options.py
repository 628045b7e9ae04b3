# SPDX-License-Identifier: GPL-2.0
"""The options of a virtual machine, and how they are written on a command line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from .. import paths
from ..arch import X86, Arch
from ..errors import Failure

CORES = ("rust", "c")
MOST_CPUS = 8
"""CONFIG_NR_CPUS."""
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def amount(text: str) -> int:
    """A number with an optional unit: 12M is 12 * 2^20."""
    match = re.fullmatch(r"([1-9][0-9]{0,9})([KMGT]?)", text.upper())
    if not match:
        raise ValueError(text)
    return int(match[1]) * UNITS[match[2]]


@dataclass(frozen=True)
class NvmeOptions:
    """The test drive: its size, its speed (bytes and requests a second), its I/O queues."""

    size: str = "4G"
    bps: str | None = None
    iops: str | None = None
    queues: int | None = None

    @classmethod
    def parse(cls, text: str) -> NvmeOptions:
        """Read size=4G,bps=12M,iops=2000,queues=1; any of them may be left out."""
        values = dict(part.partition("=")[::2] for part in text.split(",") if part)
        queues = values.pop("queues", None)
        try:
            options = cls(**values, queues=None if queues is None else int(queues))
            amounts = [amount(value) for value in (options.size, options.bps or "1", options.iops or "1")]
            if amounts[0] < UNITS["M"] or options.queues not in (None, *range(1, 65)):
                raise ValueError
        except (TypeError, ValueError):
            allowed = "drive parameters are size=4G, bps=12M, iops=2000 and queues=1 (1 to 64)"
            raise Failure(f"--nvme {text} is not possible; {allowed}", 2) from None
        return options


@dataclass(frozen=True)
class VmOptions:
    """One boot. The drive may be left out, the accelerator is found out unless given.

    The kernel is named with the command that makes it.
    Programs are static ones, which the guest of --icount has in its top folder.
    Devices are arguments of QEMU for more of them.
    """

    core: str = "rust"
    smp: int = 2
    mem: str = "2G"
    icount: bool = False
    nvme: NvmeOptions | None = field(default_factory=NvmeOptions)
    share: Path | None = None
    append: str = ""
    accel: str | None = None
    check_core: bool = True
    programs: tuple[Path, ...] = ()
    devices: tuple[str, ...] = ()
    kernel: Path = paths.BZIMAGE
    arch: Arch = X86
    made_by: str = "make kernel"
    flush_us: int = 0
    """what a flush of the drive takes; QEMU omits it if it takes nothing"""

    def check(self) -> None:
        """Refuse what cannot work, in one line that says what can."""
        if self.core not in CORES:
            raise Failure(f"unknown core {self.core}; the cores are rust and c", 2)
        if not 1 <= self.smp <= MOST_CPUS:
            raise Failure(f"--smp {self.smp}: the kernel takes 1 to {MOST_CPUS} CPUs", 2)
        try:
            if not 128 << 20 <= amount(self.mem) <= 1 << 40:
                raise ValueError
        except ValueError:
            raise Failure(f"--mem {self.mem}: give the guest's memory as 512M or 2G, at least 128M", 2) from None
        if self.icount and amount(self.mem) < 512 << 20:
            raise Failure(f"--mem {self.mem}: with --icount the root is in memory; give the guest at least 512M", 2)
