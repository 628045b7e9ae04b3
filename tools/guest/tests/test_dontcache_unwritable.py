#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Dirty dropbehind pages that cannot be written, as their file system has been shut down."""

from __future__ import annotations

import fcntl
import os
import struct
import time

from lib import ktap
from lib.dontcache import MIB, core, counter, file_system, opened, policy, trace, until, write_dontcache

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2

SECONDS = 5


def tried_at_leisure() -> None:
    """The flusher looks for them about once a second: neither never nor all the time."""
    if core() == "c":
        raise ktap.Skip("the C core forgets what a kick has left")
    with file_system("ext4") as root:
        with policy("none"), opened(root / "file") as fd:
            write_dontcache(fd, 0, bytes(MIB))
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("=I", NO_LOG_FLUSH))
        left = counter()
        assert left[0] == left[1] > 0, f"the counter is {left}"
        os.sync()
        with trace("writeback/writeback_start") as lines:
            time.sleep(SECONDS)
            rounds = sum("reason=dontcache_left" in line for line in lines())
        assert SECONDS - 3 <= rounds <= SECONDS + 3, f"{rounds} rounds in {SECONDS} s"
        assert counter() == left, f"the counter is {counter()}"
    until(lambda: counter() == (0, 0), 10, f"the counter is {counter()} after unmounting")


if __name__ == "__main__":
    ktap.main("dontcache_unwritable", [("tried_at_leisure", tried_at_leisure)])
