# SPDX-License-Identifier: GPL-2.0
"""Ordinary reads and writes of dirty DONTCACHE pages and of other pages, then DONTCACHE writes over all of them."""

import os
from pathlib import Path

from lib.dontcache import MIB, PAGE, counter, write_dontcache
from lib.row import PIECE, SIZE, exact_after, main, tried


def claim(fd: int, path: Path) -> None:
    before = counter()
    for offset in range(0, SIZE, 2 * PIECE):
        os.pread(fd, PAGE, offset)
        os.pwrite(fd, b"ordinary", offset + 2 * PAGE)
    tried(counter()[1] < before[1], "pages that are ordinary now")
    write_dontcache(fd, 0, bytes(MIB))


main(lambda: exact_after("claimed", claim))
