# SPDX-License-Identifier: GPL-2.0
"""Pages are written again and again while they are dirty or under writeback."""

import os
from pathlib import Path

from lib.dontcache import MIB, cachestat, write_dontcache
from lib.row import PIECE, SHORT, exact_after, main, tried

ROUNDS = 10 if SHORT else 100


def redirty(fd: int, path: Path) -> None:
    under_writeback = 0
    for number in range(ROUNDS):
        offset = number * PIECE % MIB
        write_dontcache(fd, offset, bytes(PIECE))
        os.posix_fadvise(fd, offset, PIECE, os.POSIX_FADV_DONTNEED)  # starts their writeback
        under_writeback += cachestat(fd, PIECE, offset).writeback
        write_dontcache(fd, offset, bytes(PIECE))
    tried(under_writeback, "pages under writeback")


main(lambda: exact_after("redirtied", redirty))
