# SPDX-License-Identifier: GPL-2.0
"""A flusher that must write much buffered data to a slow drive.

The page has another file beside it, whose ordinary pages are more than the kick is for.
"""

import os
import time

from lib.devices import SPEED, slow_drive
from lib.dontcache import MIB, PAGE, cachestat, counter, file_system, knobs, left_of, never_many, never_periodic, opened, run
from lib.dontcache import until, waited, write_dontcache, write_pieces
from lib.row import PATIENCE, Verdict, main, tried

MUCH = 10 * SPEED
BESIDE = 8 * MIB
HOUR = 60 * 60 * 100
"""Between two periodic writebacks. To set it has the flushers write what is dirty now, and no inode that comes later."""


def busy() -> Verdict:
    # Not ext4: its writers wait for the journal, which such a flusher keeps busy.
    with slow_drive() as disk, file_system("xfs", disk.device) as root, never_periodic(), never_many():
        # A write that only changes the time of the file is not to wait for the log.
        run("mount", "-o", "remount,lazytime", root)
        with opened(root / "much") as much, opened(root / "page") as fd, opened(root / "beside") as beside:
            # They have their places in the file system and are not cached, or ordinary pages would be overwritten.
            for file, size in ((fd, PAGE), (beside, BESIDE)):
                write_dontcache(file, 0, bytes(size))
                os.fsync(file)
            write_pieces(much, MUCH, MIB, flags=0)
            os.pwrite(beside, bytes(BESIDE - PAGE), PAGE)
            with knobs(dirty_writeback_centisecs=HOUR):
                started = waited(lambda: cachestat(much).writeback > 0, PATIENCE)
                before = left_of(much)
                begin = time.monotonic()
                write_dontcache(fd, 0, bytes(PAGE))
                write_dontcache(beside, 0, bytes(PAGE))
                counted = counter(disk.device)[0]
                until(lambda: cachestat(fd).dirty == 0 or not left_of(much), 60, "anything is done")
                took, after = time.monotonic() - begin, left_of(much)
                os.ftruncate(much, 0)  # nobody needs it any more
    tried(started is not None and before > MUCH // PAGE // 2, "a flusher that has much to do")
    tried(counted == 2, "pages to be kicked")
    # In seconds it would be a matter of the host: the drive is as slow as that when it is busy.
    figures = f"written after {took * 1000:.0f} ms, {after} of {before} other pages were left to write"
    return Verdict(after > before // 2, figures)


main(busy, breaks_c=True)
