# SPDX-License-Identifier: GPL-2.0
"""Buffered, O_DIRECT and O_SYNC writers while their file system is frozen and thawed."""

import mmap
import os
import time
from functools import partial
from pathlib import Path

from lib.dontcache import MIB, beside, file_system, for_a_while, frozen, opened, pattern
from lib.row import SHORT, Verdict, main, on_each, tried
from lib.ways import WAYS, Write

SECONDS = 2 if SHORT else 10
PIECE = MIB // 4


def write_for_a_while(path: Path, write: Write, opening: int) -> None:
    """Writes the file again and again."""
    data = mmap.mmap(-1, PIECE)
    with opened(path, os.O_RDWR | os.O_CREAT | opening) as fd:
        for _ in for_a_while(SECONDS):
            for offset in range(0, MIB, PIECE):
                data[:] = pattern(offset, PIECE)
                assert write(fd, data, offset, 0) == PIECE
            os.fdatasync(fd)


def freezing(kind: str) -> Verdict:
    freezes = 0
    with file_system(kind) as root:
        with beside(*(partial(write_for_a_while, root / str(number), *way) for number, way in enumerate(WAYS))):
            for _ in for_a_while(SECONDS):
                with frozen(root):
                    time.sleep(0.05)
                freezes += 1
                time.sleep(0.05)
        wrong = sum((root / str(number)).read_bytes() != pattern(0, MIB) for number in range(len(WAYS)))
    tried(freezes >= SECONDS, f"{freezes} freezes are too few")
    return Verdict(wrong == 0, f"{freezes} freezes; {wrong} files differ")


main(lambda: on_each(freezing))
