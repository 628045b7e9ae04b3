#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Large folios that are split while they are dirty: holes of a page in their middle."""

from __future__ import annotations

from pathlib import Path

from dontcache import PAGE, counter
from exactness import PIECE, SIZE, exact_after, punch_hole
from row import main, tried


def split(fd: int, path: Path) -> None:
    before = counter()
    for offset in range(PIECE // 2, SIZE, PIECE):
        punch_hole(fd, offset, PAGE)
    tried(counter()[1] < before[1], "dirty folios with holes")


if __name__ == "__main__":
    main(lambda: exact_after("split", split))
