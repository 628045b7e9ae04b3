#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Pages that are written again and again while they are dirty or under writeback."""

from __future__ import annotations

import os
from pathlib import Path

from dontcache import MIB, write_dontcache
from exactness import PIECE, exact_after
from row import SHORT, main

ROUNDS = 10 if SHORT else 100


def redirty(fd: int, path: Path) -> None:
    for number in range(ROUNDS):
        offset = number * PIECE % MIB
        write_dontcache(fd, offset, bytes(PIECE))
        os.posix_fadvise(fd, offset, PIECE, os.POSIX_FADV_DONTNEED)  # starts their writeback
        write_dontcache(fd, offset, bytes(PIECE))


if __name__ == "__main__":
    main(lambda: exact_after("redirtied", redirty))
