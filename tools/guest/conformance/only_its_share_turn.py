#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A DONTCACHE writer that is faster than the drive for long: an ordinary file is written too, without a sync."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

from lib.dontcache import MIB, PAGE, counter, file_system, left_of, opened, write_dontcache
from lib.knobs import knobs
from lib.row import KIB, PATIENCE, Verdict, main, tried, waited
from lib.slow import slow_drive
from lib.walk import beside

PIECE = 256 * KIB
FILE = 64 * MIB
LIMIT, BACKGROUND = 64 * MIB, 16 * MIB
"""Of dirty memory. The writer is held above the second, so that background writeback never ends."""
TURN = 1
"""Seconds. What may be dirty is written in two."""


def write_until(path: Path, enough: Callable[[], bool]) -> None:
    """Writes a file again and again."""
    data, count = os.urandom(PIECE), 0
    with opened(path) as fd:
        while not enough():
            write_dontcache(fd, count * PIECE % FILE, data)
            count += 1


def turn() -> Verdict:
    with slow_drive() as disk, file_system("xfs", disk.device) as root, opened(root / "ordinary") as fd:

        def much() -> bool:
            return counter(disk.device)[0] * PAGE > BACKGROUND

        enough = multiprocessing.Event()
        with knobs(dirty_bytes=LIMIT, dirty_background_bytes=BACKGROUND):
            with beside(lambda: write_until(root / "file", enough.is_set)):
                started = waited(much, PATIENCE)
                os.pwrite(fd, bytes(MIB), 0)
                took = waited(lambda: left_of(fd) == 0, TURN)
                goes_on = much()
                enough.set()
    tried(started is not None and goes_on, "a writer who is faster than the drive")
    return Verdict(took is not None, f"not written after {TURN} s" if took is None else f"written after {took:.1f} s")


if __name__ == "__main__":
    main(turn)
