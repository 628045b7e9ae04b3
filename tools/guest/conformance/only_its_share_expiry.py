# SPDX-License-Identifier: GPL-2.0
"""A dirty ordinary file beside DONTCACHE writers: it is written when it is old, and not before."""

import os
import time

from lib.dontcache import MIB, PAGE, cachestat, file_system, knobs, never_many, opened, write_dontcache
from lib.row import SHORT, Verdict, main, on_each, tried

EXPIRE = 3 if SHORT else 10
"""Seconds until a file is old."""
PERIOD = 1
"""Seconds between two looks of the flusher for what is old."""
SLACK = 2 * PERIOD + 2


def expiry(kind: str) -> Verdict:
    settings = {"dirty_expire_centisecs": EXPIRE * 100, "dirty_writeback_centisecs": PERIOD * 100}
    with file_system(kind) as root, opened(root / "young") as young, opened(root / "page") as fd:
        os.sync()
        with knobs(**settings), never_many():
            begin = time.monotonic()
            os.pwrite(young, bytes(MIB), 0)
            writes = 0
            while cachestat(young).dirty == MIB // PAGE and time.monotonic() < begin + EXPIRE + 2 * SLACK:
                write_dontcache(fd, writes * PAGE, bytes(PAGE))
                writes += 1
                time.sleep(0.01)
            age = time.monotonic() - begin
    tried(writes, "a kick beside a young file")
    in_time = EXPIRE <= age + 0.1 and age < EXPIRE + SLACK
    return Verdict(in_time, f"written at the age of {age:.1f} s after {writes} kicks, old at {EXPIRE} s")


main(lambda: on_each(expiry, ("ext4",) if SHORT else ("ext4", "xfs")), breaks_c=True)
