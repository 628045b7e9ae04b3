# SPDX-License-Identifier: GPL-2.0
"""A DONTCACHE writer that is faster than the drive for long: an ordinary file is written too, without a sync."""

import os
from pathlib import Path

from lib.devices import slow_drive
from lib.dontcache import ENOUGH, KIB, MIB, PAGE, counter, file_system, knobs, left_of, meanwhile, opened, waited, write_dontcache
from lib.row import PATIENCE, Verdict, main, tried

PIECE = 256 * KIB
SPEED = 96 * MIB
"""Bytes a second. The flusher of a drive below 32 MiB/s gives the drive what it writes in 40 ms, whoever waits."""
LIMIT, BACKGROUND = 2 * SPEED, SPEED // 2
"""Of dirty memory. The writer is held above the second, so that background writeback never ends."""
FILE = 2 * LIMIT
WRITES = 6
"""To the ordinary file, one after the other: all but the first begin when the file has just had its turn."""
TURN = 1
"""Seconds. What may be dirty is written in two."""


def write_often(path: Path) -> None:
    """Writes a file again and again, until there is enough of it."""
    data, count = os.urandom(PIECE), 0
    with opened(path) as fd:
        while not ENOUGH.exists():
            write_dontcache(fd, count * PIECE % FILE, data)
            count += 1


def written_after(fd: int, place: int) -> float:
    """Seconds until a write to the ordinary file is on the drive."""
    os.pwrite(fd, bytes(MIB), place)
    took = waited(lambda: left_of(fd) == 0, PATIENCE)
    return PATIENCE if took is None else took


def turn() -> Verdict:
    with slow_drive(SPEED) as disk, file_system("xfs", disk.device) as root, opened(root / "ordinary") as fd:

        def much() -> bool:
            return counter(disk.device)[0] * PAGE > BACKGROUND

        with knobs(dirty_bytes=LIMIT, dirty_background_bytes=BACKGROUND):
            with meanwhile([lambda: write_often(root / "file")]):
                started = waited(much, PATIENCE)
                waits = [written_after(fd, nr * MIB) for nr in range(WRITES)]
                goes_on = much()
    tried(started is not None and goes_on, "a writer who is faster than the drive")
    figures = ", ".join(f"{seconds:.1f}" for seconds in waits)
    return Verdict(max(waits) < TURN, f"written after {figures} s")


main(turn)
