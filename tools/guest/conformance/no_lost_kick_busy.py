#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A flusher that is busy for long: much buffered data on a slow drive, written because of sync."""

from __future__ import annotations

import os

from dontcache import MIB, PAGE, cachestat, file_system, opened, write_dontcache
from knobs import never_many, never_periodic
from row import BOUND, SHORT, Verdict, main, told_wait, tried, waited
from slow import SPEED, slow_drive
from walk import beside

MUCH = 2 * BOUND * SPEED
"""What the drive writes in twice the time that a kick may take."""


def busy() -> Verdict:
    figures, kept = [], True
    for kind in ("ext4",) if SHORT else ("ext4", "xfs"):
        with slow_drive() as disk, file_system(kind, disk.device) as root, never_periodic(), never_many():
            with opened(root / "much") as much, opened(root / "page") as fd:
                os.pwrite(fd, bytes(PAGE), 0)
                os.fsync(fd)
                for offset in range(0, MUCH, MIB):
                    os.pwrite(much, bytes(MIB), offset)
                with beside(os.sync):
                    started = waited(lambda: cachestat(much).writeback > 0, BOUND)
                    tried(started is not None, "a flusher that has begun")
                    write_dontcache(fd, 0, bytes(PAGE))
                    took = waited(lambda: cachestat(fd).dirty == 0, BOUND)
                    # The flusher waits for the drive with all that its one large bio holds.
                    stat = cachestat(much)
                    left = stat.dirty + stat.writeback
                    os.ftruncate(much, 0)  # nobody needs it any more
        tried(took is None or left, "a flusher that is busy all the time")
        kept &= took is not None
        figures.append(f"{kind} {told_wait(took)}, {left} other pages were left to write")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(busy)
