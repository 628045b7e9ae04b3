# SPDX-License-Identifier: GPL-2.0
"""What happens while fio runs and while its bytes are synced, seen every tenth of a second or so.

The CPU may be emulated, and slow. So the files stay open, and the sampler takes
its rest from what a sample has cost.
"""

import contextlib
import os
import threading
import time
from collections.abc import Sequence

from .kernel import DEBUGFS, Refused, counter, counter_now, stat_of, transferred, vmstat

SHARE_OF_TIME = 0.05
"""What part of the time the sampler may take from fio."""

MOST_REST = 1.0
"""Seconds of rest after a sample that seemed dear because the host of a guest stood still."""


class Sampler(threading.Thread):
    """Reads what is dirty and cached, what the counter says, and what the device has done."""

    def __init__(self, bdi: bytes, interval: float, server: Sequence[int] = ()) -> None:
        super().__init__(daemon=True)
        self.server = [os.open(f"/proc/{process}/stat", os.O_RDONLY) for process in server]
        self.bdi = bdi
        self.interval = interval
        self.rows: list[list[float]] = []
        self.began = 0.0
        """when the first sample was taken, in seconds of the epoch"""
        self.first: dict[str, int] = {}
        self.cost = 0.0
        self.error = ""
        self.done = threading.Event()
        self.memory = os.open("/proc/vmstat", os.O_RDONLY)
        # A kernel without our core has no counter, and some file systems no device of their own.
        self.counter = os.open(f"{DEBUGFS}/dontcache_dirty", os.O_RDONLY) if counter_now(bdi) is not None else None
        stat = stat_of(bdi)
        self.device = os.open(stat, os.O_RDONLY) if stat else None

    def sample(self) -> None:
        """A row: seconds since the first, pages that are dirty, under writeback, COUNTED and cached, threads of the server
        that wait in the kernel for something, bytes read and written since the first row. 0 for what is not there.
        """
        begin = time.thread_time()
        now = time.time()
        memory = os.pread(self.memory, 1 << 16, 0)
        counted = counter(os.pread(self.counter, 1 << 16, 0), self.bdi) if self.counter is not None else 0
        device = transferred(os.pread(self.device, 1 << 12, 0) if self.device is not None else b"")
        dirty, writeback, cached = (vmstat(memory, name) for name in (b"nr_dirty", b"nr_writeback", b"nr_file_pages"))
        # In state D a thread sleeps, and no signal would wake it.
        blocked = sum(os.pread(stat, 1 << 10, 0).rpartition(b") ")[2][:1] == b"D" for stat in self.server)
        if not self.rows:
            self.began, self.first = now, device
        moved = (device[name] - self.first[name] for name in ("read", "written"))
        self.rows.append([round(now - self.began, 4), dirty, writeback, counted, cached, blocked, *moved])
        self.cost = time.thread_time() - begin

    def rest(self) -> float:
        """Seconds until the next sample."""
        return max(self.interval, min(MOST_REST, self.cost / SHARE_OF_TIME))

    def run(self) -> None:
        """Sample until told to stop, ahead of the load that fills all CPUs; the first and the last row are its ends."""
        try:
            with contextlib.suppress(PermissionError):  # only root gets ahead
                os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(1))
            self.sample()
            while not self.done.wait(self.rest()):
                self.sample()
            self.sample()
        except (OSError, ValueError, IndexError, Refused) as error:
            self.error = str(error)

    def stop(self) -> list[list[float]]:
        """End the thread; the samples."""
        self.done.set()
        self.join()
        for descriptor in (self.memory, self.counter, self.device, *self.server):
            if descriptor is not None:
                os.close(descriptor)
        if self.error:
            raise Refused(f"the sampler failed: {self.error}")
        return self.rows
