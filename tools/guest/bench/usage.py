# SPDX-License-Identifier: GPL-2.0
"""What the machine has spent so far, to be read before and after a load."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from .kernel import read, stat_of, transferred

PROC = "/proc"

WORKERS = ("kworker/", "nfsd")
"""The names of those who work for a load: an NFS server's threads, too."""

SCHEDULED = 2
"""In the number of a process's clock: the time that the scheduler has given it. See clock_getcpuclockid(3)."""


def cpu_microseconds(process: int) -> int:
    """What all threads of a process have had of the CPUs, those that have ended too; 0 if there is no such process.

    Anybody may read it, it takes one system call, and it is not counted in ticks.
    """
    try:
        return time.clock_gettime_ns(~process << 3 | SCHEDULED) // 1000
    except OSError:
        return 0


def of_workers() -> dict[int, int]:
    """The CPU time of each of the kernel's workers, of which flushers are some."""
    spent = {}
    for process in (int(name) for name in os.listdir(PROC) if name.isdigit()):
        try:
            name = read(f"{PROC}/{process}/comm")
        except OSError:
            continue  # it has ended
        if name.startswith(WORKERS):
            spent[process] = cpu_microseconds(process)
    return spent


@dataclass
class Usage:
    """The machine at one moment. What cannot be seen of it is empty."""

    switches: int
    workers: dict[int, int]
    device: dict[str, int]

    @classmethod
    def now(cls, bdi: bytes) -> Usage:
        """Read it all."""
        switches = int(read("/proc/stat").partition("\nctxt ")[2].split()[0])
        path = stat_of(bdi)
        return cls(switches, of_workers(), transferred(read(path)) if path else {})

    def since(self, before: Usage) -> dict[str, float]:
        """The difference; a worker that was not there before began at nothing."""
        spent = sum(spent - before.workers.get(process, 0) for process, spent in self.workers.items())
        return {
            "context_switches": self.switches - before.switches,
            **({"worker_seconds": max(0, spent) / 1e6} if self.workers else {}),
            **{f"device_{name}": value - before.device[name] for name, value in self.device.items()},
        }
