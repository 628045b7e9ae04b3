# SPDX-License-Identifier: GPL-2.0
"""What happens while fio runs, seen every tenth of a second or so.

The CPU may be emulated, and slow. So the files stay open, and the sampler takes
its rest from what a sample has cost.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time

from .kernel import DEBUGFS, Refused, counter, has_counter, root_pages, stat_of, transferred, vmstat

SHARE_OF_TIME = 0.05
"""What part of the time the sampler may take from fio."""


class Sampler(threading.Thread):
    """Reads what is dirty and cached, what the counter says, and what the device has done."""

    def __init__(self, bdi: bytes, interval: float) -> None:
        super().__init__(daemon=True)
        self.bdi = bdi
        self.interval = interval
        self.rows: list[list[float]] = []
        self.cost = 0.0
        self.error = ""
        self.done = threading.Event()
        self.memory = os.open("/proc/vmstat", os.O_RDONLY)
        self.root = root_pages()
        # A kernel without our core has no counter, and some file systems no device of their own.
        self.counter = os.open(f"{DEBUGFS}/dontcache_dirty", os.O_RDONLY) if has_counter(bdi) else None
        stat = stat_of(bdi)
        self.device = os.open(stat, os.O_RDONLY) if stat else None

    def sample(self) -> None:
        """Seconds, pages that are dirty, under writeback, COUNTED and cached, bytes read and written.

        0 for what is not there.
        """
        begin = time.thread_time()
        now = time.monotonic()
        memory = os.pread(self.memory, 1 << 16, 0)
        counted = counter(os.pread(self.counter, 1 << 16, 0), self.bdi)[0] if self.counter is not None else 0
        device = transferred(os.pread(self.device, 1 << 12, 0) if self.device is not None else b"")
        pages = [vmstat(memory, name) for name in (b"nr_dirty", b"nr_writeback", b"nr_file_pages")]
        cached = pages[2] - self.root
        self.rows.append([round(now, 4), *pages[:2], counted, cached, device["read"], device["written"]])
        self.cost = time.thread_time() - begin

    def run(self) -> None:
        """Sample until told to stop, ahead of the load that fills all CPUs."""
        try:
            with contextlib.suppress(PermissionError):  # only root gets ahead
                os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(1))
            while not self.done.wait(max(self.interval, self.cost / SHARE_OF_TIME)):
                self.sample()
        except (OSError, ValueError, IndexError, Refused) as error:
            self.error = str(error)

    def stop(self) -> list[list[float]]:
        """End the thread; the samples, with seconds and bytes counted from the first."""
        self.done.set()
        self.join()
        for descriptor in (self.memory, self.counter, self.device):
            if descriptor is not None:
                os.close(descriptor)
        if self.error:
            raise Refused(f"the sampler failed: {self.error}")
        first = self.rows[0] if self.rows else []
        return [
            [round(row[0] - first[0], 4), *row[1:5], row[5] - first[5], row[6] - first[6]] for row in self.rows
        ]
