#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Dirty dropbehind pages that cannot be written, as their file system has been shut down."""

import fcntl
import itertools
import os
import re
import struct
import time

from lib import ktap
from lib.dontcache import MIB, core, counter, file_system, held, opened, trace, until, write_dontcache

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2

SECONDS = 5
LEFT = re.compile(r" (\d+\.\d+): writeback_start: .*reason=dontcache")


def tried_after_each_delay() -> None:
    """The flusher tries them after each delay of 0.2 s: neither never nor all the time."""
    if core() == "c":
        raise ktap.Skip("the C core forgets what a kick has left")
    with file_system("ext4") as root:
        with held(), opened(root / "file") as fd:
            write_dontcache(fd, 0, bytes(MIB))
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("=I", NO_LOG_FLUSH))
        left = counter()
        assert left[0] == left[1] > 0, f"the counter is {left}"
        os.sync()
        with trace("writeback/writeback_start") as lines:
            time.sleep(SECONDS)
            times = [float(found[1]) for line in lines() if (found := LEFT.search(line))]
            # A round tries twice: C begins at the front of a file when it comes again.
            rounds = sum(time - before > 0.1 for before, time in itertools.pairwise([0.0, *times]))
        # One each 200 ms; a flusher that looks once a second would have 5.
        assert 3 * SECONDS <= rounds <= 5 * SECONDS + 1, f"{rounds} rounds in {SECONDS} s"
        assert counter() == left, f"the counter is {counter()}"
    until(lambda: counter() == (0, 0), 10, f"the counter is {counter()} after unmounting")


if __name__ == "__main__":
    ktap.main("dontcache_unwritable", [("tried_after_each_delay", tried_after_each_delay)])
