# SPDX-License-Identifier: GPL-2.0
"""Moves an inode to another writeback domain while a DONTCACHE writer's pages are dirty."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lib.dontcache import KIB, MIB, cachestat, cgroup, file_system, flusher_held, forked, in_cgroup, opened, start_writeback
from lib.dontcache import trace, write_dontcache
from lib.row import tried

KEPT_DIRTY = 256 * KIB
"""The start of the file, which nobody but the flusher writes."""
ROUND = 64 * KIB
ATTEMPTS = 10
SECONDS = 0.7
"""How long the flusher can be held back at once."""


def write_as_foreigner(group: Path, path: Path, moved: Callable[[], bool]) -> None:
    """Dirties the start of the file, and has the kernel see a foreign writer until it moves the inode."""
    # In this order: an ordinary task would not get away from the CPU of the real-time one.
    os.sched_setaffinity(0, {1})
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    (group / "cgroup.procs").write_text(str(os.getpid()))
    deadline = time.monotonic() + SECONDS
    with opened(path) as fd:
        write_dontcache(fd, 0, bytes(KEPT_DIRTY))
        offset = KEPT_DIRTY
        while not moved() and time.monotonic() < deadline:
            write_dontcache(fd, offset, bytes(ROUND))
            start_writeback(fd, offset, ROUND)
            offset += ROUND
            time.sleep(0.002)


def spin_beside(function: Callable[[], None]) -> None:
    """Runs the function in a child process, and leaves the CPU to nobody else meanwhile."""
    child = forked(function)
    deadline = time.monotonic() + 10 * SECONDS
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        os.sched_yield()
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
    assert ended[1] == 0, "the foreign writer failed"


@contextmanager
def moved_while_dirty(kind: str) -> Iterator[int]:
    """A file whose inode has moved to another wb with dirty DONTCACHE pages, for which the first was kicked.

    The flusher is held back as long as the body does not sleep.
    """

    def make() -> None:
        with opened(root / "file") as fd:
            write_dontcache(fd, 0, bytes(MIB))
            os.fsync(fd)

    with file_system(kind) as root, cgroup("first") as first, cgroup("second") as second:
        path = root / "file"
        in_cgroup(first, make)
        with opened(path) as fd, trace("writeback/inode_switch_wbs") as lines:

            def moved() -> bool:
                return bool(lines())

            for _ in range(ATTEMPTS):
                with flusher_held():
                    spin_beside(lambda: write_as_foreigner(second, path, moved))
                    if moved():
                        tried(cachestat(fd, KEPT_DIRTY).dirty, "dirty pages of an inode that moves")
                        yield fd
                        return
                os.sync()
        tried(False, "an inode that moves")
