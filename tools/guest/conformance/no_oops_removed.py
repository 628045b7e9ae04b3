# SPDX-License-Identifier: GPL-2.0
"""A device is removed in several ways while its pages are dirty and writers run, bare and with a file system."""

import contextlib
import errno
import mmap
import os
import time
from functools import partial

from lib.devices import TIMER, null_block
from lib.dontcache import MIB, PAGE, beside, file_system, opened, pattern, until
from lib.row import SHORT, Verdict, main, on_each
from lib.walk import NULL_BLK
from lib.ways import WAYS, Write

ROUNDS = 1 if SHORT else 4
SIZE = MIB
"""What each writer has for itself."""
PATIENCE = 60
"""Seconds that writers may take to begin, and to be told: it is a slow machine, or a slow kernel."""
GONE = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.ENOSPC, errno.EROFS, errno.EUCLEAN)
"""What somebody may hear whose device is gone; the last is what xfs says when it has shut down."""


BEGUN, TOLD, TOLD_WRONG = 1, 2, 3
"""What is noted of a writer."""


def write_until_told(path: str, write: Write, opening: int, number: int, notes: mmap.mmap) -> None:
    """Writes and syncs until the device is gone, and once more then."""
    offset = number * SIZE
    data = mmap.mmap(-1, SIZE)
    data.write(pattern(offset, SIZE))
    with opened(path, os.O_RDWR | os.O_CREAT | opening) as fd:
        for attempt in range(2):
            deadline = time.monotonic() + PATIENCE
            try:
                while time.monotonic() < deadline:
                    write(fd, data, offset, 0)
                    os.fsync(fd)
                    notes[number] = BEGUN if attempt == 0 else notes[number]
            except OSError as error:
                notes[number] = TOLD if error.errno in GONE else TOLD_WRONG
            else:
                return


def removed(kind: str) -> Verdict:
    untold = 0
    for _ in range(ROUNDS):
        with contextlib.ExitStack() as stack, mmap.mmap(-1, PAGE) as notes:
            disk = stack.enter_context(null_block(TIMER))
            path = disk.device if kind == "bare" else str(stack.enter_context(file_system(kind, disk.device)) / "file")
            with beside(*(partial(write_until_told, path, *way, number, notes) for number, way in enumerate(WAYS))):
                until(lambda: all(notes[: len(WAYS)]), PATIENCE, "all writers begin")
                (NULL_BLK / "walk" / "power").write_text("0")
            untold += sum(note != TOLD for note in notes[: len(WAYS)])
    return Verdict(not untold, f"{ROUNDS} removals, {untold} writers were not told, or told something else")


main(lambda: on_each(removed, ("bare", "ext4", "xfs")))
