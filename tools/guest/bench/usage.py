# SPDX-License-Identifier: GPL-2.0
"""What the machine has spent so far, to be read before and after a load."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .kernel import context_switches, stat_of, transferred

TICKS = os.sysconf("SC_CLK_TCK")


def worker_ticks(stat: str) -> int | None:
    """User and system ticks of one /proc/PID/stat if it is a kworker's; flushers are kworkers, too."""
    name, _, rest = stat.partition("(")[2].rpartition(")")
    words = rest.split()
    return int(words[11]) + int(words[12]) if name.startswith("kworker/") else None


def workers() -> dict[str, int]:
    """The ticks of every kworker that there is."""
    ticks = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"/proc/{entry.name}/stat", encoding="ascii", errors="replace") as file:
                spent = worker_ticks(file.read())
        except OSError:
            continue  # it has ended
        if spent is not None:
            ticks[entry.name] = spent
    return ticks


@dataclass
class Usage:
    """The machine at one moment. What cannot be seen of it is empty."""

    switches: int
    workers: dict[str, int]
    device: dict[str, int]

    @classmethod
    def now(cls, bdi: bytes) -> Usage:
        """Read it all."""
        with open("/proc/stat", "rb") as file:
            switches = context_switches(file.read())
        device = {}
        if path := stat_of(bdi):
            with open(path, "rb") as file:
                device = transferred(file.read())
        return cls(switches, workers(), device)

    def since(self, before: Usage) -> dict[str, float]:
        """The difference; a worker that was not there before began at nothing."""
        ticks = sum(spent - before.workers.get(name, 0) for name, spent in self.workers.items())
        return {
            "context_switches": self.switches - before.switches,
            **({"worker_seconds": max(0, ticks) / TICKS} if self.workers else {}),
            **{f"device_{name}": value - before.device[name] for name, value in self.device.items()},
        }
