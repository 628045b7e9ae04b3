# SPDX-License-Identifier: GPL-2.0
"""Overwrites of a file on ext4 with data=journal, where a task ends the writeback of folios that it has locked."""

import os

from lib.devices import null_softirq
from lib.dontcache import KIB, MIB, RWF_DONTCACHE, file_system, forget, opened
from lib.row import Verdict, main, nothing_left, pages_left

LENGTH = 16 * MIB
PIECE = 64 * KIB
SECONDS = 2
OVERWRITES = 16


def write_file(fd: int, letter: bytes) -> int:
    """The pages that are left a while after they are durable."""
    for offset in range(0, LENGTH, PIECE):
        assert os.pwritev(fd, [letter * PIECE], offset, RWF_DONTCACHE) == PIECE
    os.fsync(fd)
    return pages_left(fd, LENGTH, SECONDS)


def journalled() -> Verdict:
    with null_softirq() as device, file_system("ext4", device, mode="data=journal") as root:
        with opened(root / "file") as fd:
            left = {"written": write_file(fd, b"a")}
            forget(fd, LENGTH)
            for nr in range(OVERWRITES):
                left[f"overwritten {nr}"] = write_file(fd, b"b")
    return nothing_left(left)


main(journalled, breaks_c=True)
