# SPDX-License-Identifier: GPL-2.0
"""The moment from which all that a load has written is on the drive.

fio takes its time to end once its jobs have, and a drive goes on writing
meanwhile. So the sync begins when the last job's thread is gone.
"""

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable

from .kernel import read

PIDFD_THREAD = os.O_EXCL
"""Of pidfd_open(2): a thread, not a process."""

LOOK_SECONDS = 0.01
"""How often it looks for jobs that have not begun yet."""

HELPERS = 2
"""fio's first threads, which do none of the load."""


class Durable(threading.Thread):
    """Waits for the jobs of fio, syncs, and keeps the time."""

    def __init__(self, jobs: int, sync: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.jobs = jobs
        self.sync = sync
        self.process = 0
        self.seen: set[int] = set()
        self.began_ms = self.at_ms = 0.0
        self.error: BaseException | None = None

    def watch(self, process: int) -> None:
        """Begin with the process of fio, which must not be reaped before end() is called."""
        self.process = process
        self.start()

    def run(self) -> None:
        """Wait ahead of the load, and sync like anybody.

        Whoever syncs ahead of others takes the CPU from the worker that ends a bio, once for each of its folios.
        """
        try:
            self._schedule(os.SCHED_FIFO, 1)
            self._wait()
            self._schedule(os.SCHED_OTHER, 0)
            self.began_ms = 1e3 * time.time()
            self.sync()
            self.at_ms = 1e3 * time.time()
        except BaseException as error:
            self.error = error

    def _schedule(self, policy: int, priority: int) -> None:
        with contextlib.suppress(PermissionError):  # only root gets ahead
            os.sched_setscheduler(threading.get_native_id(), policy, os.sched_param(priority))

    def _wait(self) -> None:
        """Until as many jobs as there are have begun and ended, or fio has."""
        with contextlib.ExitStack() as stack:
            alive = select.poll()
            watched: dict[int, int] = {}

            def add(descriptor: int) -> int:
                stack.callback(os.close, descriptor)
                alive.register(descriptor, select.POLLIN)
                return descriptor

            try:
                whole = add(os.pidfd_open(self.process))
            except ProcessLookupError:
                return
            while len(self.seen) < self.jobs or watched:
                for thread in self._new():
                    with contextlib.suppress(ProcessLookupError):
                        watched[add(os.pidfd_open(thread, PIDFD_THREAD))] = thread
                for descriptor, _ in alive.poll(None if len(self.seen) >= self.jobs else 1e3 * LOOK_SECONDS):
                    if descriptor == whole:
                        return
                    alive.unregister(descriptor)
                    watched.pop(descriptor)

    def _new(self) -> set[int]:
        """Jobs that were not seen before. The workers of io_uring have another name."""
        if len(self.seen) >= self.jobs:
            return set()
        folder = f"/proc/{self.process}/task"
        found: set[int] = set()
        with contextlib.suppress(OSError):
            for thread in sorted(int(name) for name in os.listdir(folder))[HELPERS:]:
                if thread not in self.seen and read(f"{folder}/{thread}/comm") == "fio":
                    found.add(thread)
        self.seen |= found
        return found

    def end(self) -> None:
        """fio has ended; wait for the sync."""
        self.join()
        if self.error:
            raise self.error
