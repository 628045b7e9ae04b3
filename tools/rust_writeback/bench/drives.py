# SPDX-License-Identifier: GPL-2.0
"""The drives that loads run on, by name."""

from dataclasses import dataclass

from ..errors import Failure
from ..vm.options import amount


@dataclass(frozen=True)
class Drive:
    """What limits a drive; None and 0 mean that it does not."""

    name: str
    bps: str | None = None
    """bytes a second"""
    iops: str | None = None
    """requests a second"""
    latency_ns: int = 0
    """what a request takes, however large; the drive is null_blk in the guest's memory then, not the emulated NVMe"""

    def __str__(self) -> str:
        limits = [f"{self.bps}B/s" if self.bps.isdigit() else f"{self.bps}iB/s"] if self.bps else []
        limits += [f"{self.iops} requests/s"] if self.iops else []
        limits += [f"{self.latency_ns / 1000:.0f} us a request"] if self.latency_ns else []
        return f"{self.name} ({', '.join(limits)})" if limits else self.name


CLOUD = Drive("cloud", bps="125M", iops="3000")
"""A volume of a cloud provider, where the number of requests is the price."""

STREAM = Drive("stream", bps="112M")
"""Limited in bytes only, like a disk or a slow link."""

FAST = Drive("fast", latency_ns=20_000)
"""An NVMe drive that writes to its buffer."""

PROFILES = {drive.name: drive for drive in (CLOUD, STREAM, FAST)}


def parse(text: str) -> Drive:
    """A profile's name, or limits of an emulated NVMe: bps=1G,iops=600."""
    if text in PROFILES:
        return PROFILES[text]
    limits = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        if not limits.keys() <= {"bps", "iops"}:
            raise ValueError
        for value in limits.values():
            amount(value)
    except ValueError:
        raise Failure(f"--drive {text} is unknown; give {', '.join(PROFILES)}, or limits like bps=1G,iops=600", 2) from None
    return Drive(text, bps=limits.get("bps"), iops=limits.get("iops"))
