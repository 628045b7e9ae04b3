#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Ordinary reads and writes of pages that are dirty for DONTCACHE, and DONTCACHE writes over those."""

from __future__ import annotations

import os
from pathlib import Path

from dontcache import MIB, PAGE, write_dontcache
from exactness import PIECE, SIZE, exact_after
from row import main


def claim(fd: int, path: Path) -> None:
    for offset in range(0, SIZE, PIECE):
        os.pread(fd, PAGE, offset)
        os.pwrite(fd, b"ordinary", offset + 2 * PAGE)
    write_dontcache(fd, 0, bytes(MIB))


if __name__ == "__main__":
    main(lambda: exact_after("claimed", claim))
