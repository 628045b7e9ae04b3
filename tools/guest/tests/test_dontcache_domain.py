#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An inode that changes its writeback domain takes its counted pages along."""

from __future__ import annotations

import os
import time

from lib import ktap
from lib.dontcache import MIB, cgroup, counter, file_system, in_cgroup, opened, pattern, trace, until, write_dontcache

SIZE = 4 * MIB


def counter_follows_the_inode() -> None:
    """One cgroup makes the file, another goes on writing it until the kernel moves the inode."""

    def write_once() -> None:
        with opened("/tmp/mnt/moved") as fd:
            for offset in range(0, SIZE, MIB):
                write_dontcache(fd, offset, pattern(offset, MIB))
            os.fsync(fd)

    with file_system("ext4"), cgroup("first") as first, cgroup("second") as second:
        in_cgroup(first, write_once)
        with trace("writeback/inode_switch_wbs") as lines:

            def write_until_moved() -> None:
                deadline = time.monotonic() + 60
                while not lines():
                    assert time.monotonic() < deadline, "the inode was not moved within 60 s"
                    write_once()
                # Dirty pages are there now and again while the inode has its new wb.
                write_once()

            in_cgroup(second, write_until_moved)
        os.sync()
        until(lambda: counter() == (0, 0), 10, f"the counter is {counter()}")


if __name__ == "__main__":
    ktap.main("dontcache_domain", [("counter_follows_the_inode", counter_follows_the_inode)])
