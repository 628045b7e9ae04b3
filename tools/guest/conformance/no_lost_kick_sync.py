# SPDX-License-Identifier: GPL-2.0
"""Repeated syncfs() of one partition of a slow drive, beside a page of another partition with the same flusher."""

import functools
import os
from pathlib import Path

from lib.devices import partition, slow_drive
from lib.dontcache import ENOUGH, MIB, PAGE, cachestat, file_system, left_of, meanwhile, never_many, never_periodic, opened
from lib.dontcache import syncfs, waited, write_dontcache
from lib.row import BOUND, PATIENCE, SHORT, Verdict, main, told_wait, tried

SYNCERS = 48
"""So many that there always is one whom the flusher has to serve."""
PIECE = 4 * MIB
PART = 384 * MIB
PAGES = 3 if SHORT else 10


def sync_often(path: Path) -> None:
    """Writes and syncs, until there is enough of it."""
    data = os.urandom(PIECE)
    with opened(path) as fd:
        while not ENOUGH.exists():
            os.pwrite(fd, data, 0)
            syncfs(fd)


def beside_syncs() -> Verdict:
    longest, dirty = 0.0, 0
    with (
        slow_drive() as disk,
        partition(disk.device, 1, 0, PART) as first,
        partition(disk.device, 2, PART, MIB) as second,
        file_system("xfs", first) as root,
        opened(second, os.O_RDWR) as fd,
        never_periodic(),
        never_many(),
        meanwhile(functools.partial(sync_often, root / str(number)) for number in range(SYNCERS)),
    ):
        under_way = waited(lambda: sum(left_of_syncer(root, number) for number in range(SYNCERS)) > PIECE // PAGE, PATIENCE)
        for number in range(PAGES):
            write_dontcache(fd, number * PAGE, bytes(PAGE))
            dirty += cachestat(fd).dirty
            took = waited(lambda: cachestat(fd).dirty == 0, BOUND)
            if took is None:
                break
            longest = max(longest, took)
    tried(under_way is not None and dirty, "a page that was dirty while others sync")
    told = told_wait(None if took is None else longest)
    return Verdict(took is not None, f"{number + 1} pages, the slowest {told}")


def left_of_syncer(root: Path, number: int) -> int:
    """Pages of a syncer's file that the drive does not have."""
    with opened(root / str(number)) as fd:
        return left_of(fd)


main(beside_syncs, breaks_c=True)
