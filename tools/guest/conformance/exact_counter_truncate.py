# SPDX-License-Identifier: GPL-2.0
"""A file is truncated in the middle of large folios beside a reader of what is behind, and as a whole."""

import mmap
import os
from pathlib import Path

from lib.dontcache import beside, counter, for_a_while, opened, until
from lib.row import PIECE, SIZE, dirty, exact_after, main, tried


def read_behind(fd: int, shared: mmap.mmap) -> None:
    """Each read takes what is behind the first cut from DONTCACHE."""
    os.sched_setaffinity(0, {1})  # First: an ordinary task would not get away from the real-time one's CPU.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    for _ in for_a_while(10):
        shared[0] = shared[0] or len(os.pread(fd, SIZE, SIZE // 2)) > 0
        if shared[1]:
            break


def truncate(fd: int, path: Path) -> None:
    # What is not on the drive yet would be written before it is cut off.
    os.fsync(fd)
    dirty(fd)
    before = counter()
    os.ftruncate(fd, SIZE // 2 + PIECE // 2 + 7)
    tried(counter()[1] < before[1], "dirty pages that are truncated")
    shared = mmap.mmap(-1, mmap.PAGESIZE)
    with beside(lambda: read_behind(fd, shared)):
        until(lambda: shared[0] > 0, 10, "somebody reads")
        for cut in range(20):
            dirty(fd)
            os.ftruncate(fd, SIZE // 2 + PIECE * cut // 20 + 7)
        shared[1] = 1
    with opened(path.with_name("other")) as other:
        dirty(other)
        os.ftruncate(other, 0)


main(lambda: exact_after("truncated", truncate))
