# SPDX-License-Identifier: GPL-2.0
"""What happens while fio runs and while its bytes are synced, seen every tenth of a second or so.

The CPU may be emulated, and slow. So the files stay open, and the sampler takes
its rest from what a sample has cost.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence

from .kernel import DEBUGFS, Refused, context_switches, counter, has_counter, stat_of, transferred, vmstat
from .usage import Workers, cpu_microseconds

SHARE_OF_TIME = 0.05
"""What part of the time the sampler may take from fio."""

MOST_REST = 1.0
"""Seconds of rest after a sample that seemed dear because the host of a guest stood still."""

LOOK_AROUND = 10
"""After so many samples it looks for new workers; their clocks say what they have had meanwhile."""

SUMS = 6
"""The first column of a sample that only grows; how it was when the load began means nothing."""


class Sampler(threading.Thread):
    """Reads what is dirty and cached, what the counter says, what the device has done, and who had the CPUs."""

    def __init__(self, bdi: bytes, interval: float, server: Sequence[int] = ()) -> None:
        super().__init__(daemon=True)
        self.server = [os.open(f"/proc/{process}/stat", os.O_RDONLY) for process in server]
        self.bdi = bdi
        self.interval = interval
        self.rows: list[list[float]] = []
        self.cost = self.looking = 0.0
        self.error = ""
        self.done = threading.Event()
        self.load = 0
        self.load_spent = 0
        self.workers = Workers()
        self.memory = os.open("/proc/vmstat", os.O_RDONLY)
        self.cpus = os.open("/proc/stat", os.O_RDONLY)
        # A kernel without our core has no counter, and some file systems no device of their own.
        self.counter = os.open(f"{DEBUGFS}/dontcache_dirty", os.O_RDONLY) if has_counter(bdi) else None
        stat = stat_of(bdi)
        self.device = os.open(stat, os.O_RDONLY) if stat else None

    def watch(self, process: int) -> None:
        """Have the CPU time of this process in the samples, too."""
        self.load = process

    def sample(self) -> None:
        """A row: seconds of the epoch, pages that are dirty, under writeback, COUNTED and cached, threads of the server that wait
        in the kernel for something; and since the first row bytes read and written, context switches, and
        microseconds of CPU time of the load and of the kernel's workers.

        0 for what is not there.
        """
        begin = time.thread_time()
        now = time.time()
        memory = os.pread(self.memory, 1 << 16, 0)
        counted = counter(os.pread(self.counter, 1 << 16, 0), self.bdi)[0] if self.counter is not None else 0
        device = transferred(os.pread(self.device, 1 << 12, 0) if self.device is not None else b"")
        dirty, writeback, cached = (vmstat(memory, name) for name in (b"nr_dirty", b"nr_writeback", b"nr_file_pages"))
        spent = [context_switches(whole(self.cpus)), *self.cpu_times()]
        blocked = sum(is_blocked(os.pread(stat, 1 << 10, 0)) for stat in self.server)
        moved = (device["read"], device["written"])
        self.rows.append([round(now, 4), dirty, writeback, counted, cached, blocked, *moved, *spent])
        self.cost = time.thread_time() - begin

    def cpu_times(self) -> tuple[int, int]:
        """Microseconds that the load, and the kernel's workers, have had."""
        if self.load:
            self.load_spent = cpu_microseconds(self.load) or self.load_spent
        self.workers.update()
        return self.load_spent, sum(self.workers.spent.values())

    def look_around(self) -> None:
        """Find new workers."""
        begin = time.thread_time()
        self.workers.find()
        self.looking = time.thread_time() - begin

    def rest(self) -> float:
        """Seconds until the next sample. Looking around takes long: its rest is spread, or there would be gaps."""
        return max(self.interval, min(MOST_REST, (self.cost + self.looking / LOOK_AROUND) / SHARE_OF_TIME))

    def run(self) -> None:
        """Sample until told to stop, ahead of the load that fills all CPUs; the first and the last row are its ends."""
        try:
            with contextlib.suppress(PermissionError):  # only root gets ahead
                os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(1))
            self.sample()
            while not self.done.wait(self.rest()):
                self.sample()
                if len(self.rows) % LOOK_AROUND == 0:
                    self.look_around()
            self.sample()
        except (OSError, ValueError, IndexError, Refused) as error:
            self.error = str(error)

    def stop(self) -> list[list[float]]:
        """End the thread; the samples, with seconds and sums counted from the first."""
        self.done.set()
        self.join()
        for descriptor in (self.memory, self.cpus, self.counter, self.device, *self.server):
            if descriptor is not None:
                os.close(descriptor)
        if self.error:
            raise Refused(f"the sampler failed: {self.error}")
        first = self.rows[0] if self.rows else []
        return [
            [
                round(row[0] - first[0], 4),
                *row[1:SUMS],
                *(value - before for value, before in zip(row[SUMS:], first[SUMS:], strict=True)),
            ]
            for row in self.rows
        ]


def is_blocked(stat: bytes) -> bool:
    """Does the process sleep, and no signal would wake it?"""
    return stat.rpartition(b") ")[2][:1] == b"D"


def whole(descriptor: int) -> bytes:
    """All of an open file, which on a large machine does not come in one piece."""
    text = b""
    while part := os.pread(descriptor, 1 << 16, len(text)):
        text += part
    return text
