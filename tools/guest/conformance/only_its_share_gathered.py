#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What gathers begins a round when it is enough, for one file and for several, and not before; what is less waits."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lib.dontcache import MIB, PAGE, file_system, left_of, opened, write_dontcache
from lib.knobs import adaptive, never_many, never_periodic
from lib.row import BOUND, PATIENCE, Verdict, main, tried, waited
from lib.slow import slow_drive

DELAY = 3
"""Seconds for which what is less waits."""
BOUNDS = {
    "most_ms": DELAY * 1000, "least_ms": DELAY * 1000, "most_kib": 32 << 10, "least_kib": 16 << 10, "inode_kib": 8 << 10,
}  # fmt: skip
"""The least is enough on a drive as slow as this. What a CPU has not added to the sum yet, 2 MiB at most, is little."""
BEGINS = (
    ("12 MiB of a file", 1, 12 * MIB, False),
    ("20 MiB of a file", 1, 20 * MIB, True),
    ("20 MiB of 4 files", 4, 20 * MIB, False),
    ("36 MiB of 4 files", 4, 36 * MIB, True),
)
PIECE = 64 << 10


def begun(root: Path, number: int, size: int) -> bool:
    """Whether a round begins before the delay is over, when so much is written to so many files, one after the other."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(opened(root / str(each))) for each in range(number)]

        def left() -> int:
            return sum(left_of(fd) for fd in files)

        # A wb knows what is enough from its first round on.
        write_dontcache(files[0], 0, bytes(PAGE))
        tried(waited(lambda: left() == 0, PATIENCE), "a first round")
        for fd in files:
            for offset in range(0, size // number, PIECE):
                write_dontcache(fd, offset, bytes(PIECE))
        took = waited(lambda: left() <= size * 3 // 4 // PAGE, BOUND)
        tried(took is not None or left() == size // PAGE, "a round that wrote enough to be seen")
    return took is not None


def gathered() -> Verdict:
    figures, kept = [], True
    everywhere = os.sched_getaffinity(0)
    # All that is not added yet is this CPU's.
    os.sched_setaffinity(0, {0})
    try:
        with never_periodic(), never_many(), adaptive(**BOUNDS):
            for what, number, size, enough in BEGINS:
                with slow_drive() as disk, file_system("xfs", disk.device) as root:
                    begins = begun(root, number, size)
                kept &= begins == enough
                figures.append(f"{what}: {'a round' if begins else 'no round'}")
    finally:
        os.sched_setaffinity(0, everywhere)
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(gathered, breaks_c=True)
