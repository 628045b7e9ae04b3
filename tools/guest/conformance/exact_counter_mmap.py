# SPDX-License-Identifier: GPL-2.0
"""Stores through a mapping into dirty DONTCACHE pages and into other pages."""

import mmap
from pathlib import Path

from lib.dontcache import PAGE
from lib.row import PIECE, SIZE, exact_after, main


def store(fd: int, path: Path) -> None:
    with mmap.mmap(fd, SIZE) as mapping:
        for offset in range(0, SIZE, 2 * PIECE):
            mapping[offset + PAGE : offset + PAGE + 8] = b"mapped!!"


main(lambda: exact_after("mapped", store))
