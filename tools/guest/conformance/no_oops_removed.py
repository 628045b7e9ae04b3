# SPDX-License-Identifier: GPL-2.0
"""A device is removed in several ways while its pages are dirty and writers run, bare and with a file system."""

import errno
import mmap
import os
import time
from functools import partial

from lib.devices import TIMER, null_block
from lib.dontcache import MIB, MKFS, MOUNT, PAGE, opened, pattern, run, until
from lib.interfaces import WAYS, Write
from lib.row import SHORT, Verdict, main, tried
from lib.walk import NULL_BLK, beside

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
    with opened(path, os.O_RDWR | opening) as fd:
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


def removed() -> Verdict:
    MOUNT.mkdir(exist_ok=True)
    removals, untold = 0, []
    for kind in ("bare", "ext4", "xfs"):
        for _ in range(ROUNDS):
            with null_block(TIMER) as disk:
                path = disk.device
                if kind != "bare":
                    run(*MKFS[kind], path)
                    run("mount", "-t", kind, path, MOUNT)
                    path = str(MOUNT / "file")
                    with opened(path):
                        pass
                with mmap.mmap(-1, PAGE) as notes:
                    with beside(*(partial(write_until_told, path, *way, number, notes) for number, way in enumerate(WAYS))):
                        until(lambda: all(notes[: len(WAYS)]), PATIENCE, "all writers begin")
                        (NULL_BLK / "walk" / "power").write_text("0")
                        removals += 1
                    others = sum(note != TOLD for note in notes[: len(WAYS)])
                    untold += [f"{kind}: {others} writers were not told, or told something else"] * bool(others)
                if kind != "bare":
                    run("umount", MOUNT)
    tried(removals == 3 * ROUNDS, "all removals")
    return Verdict(not untold, "; ".join(untold) or f"{removals} removals, all writers were told of each")


main(removed)
