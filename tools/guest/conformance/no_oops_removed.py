#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A device that is removed while its pages are dirty and a writer goes on, bare and with a file system."""

from __future__ import annotations

import errno
import functools
import os
import time

from devices import TIMER, null_block
from dontcache import MIB, MKFS, MOUNT, RWF_DONTCACHE, opened, pattern, run
from row import SHORT, Verdict, main, tried
from walk import NULL_BLK, beside

ROUNDS = 1 if SHORT else 4
GONE = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.ENOSPC, errno.EROFS, errno.EUCLEAN)
"""What somebody may hear whose device is gone; the last is what xfs says when it has shut down."""


def write_until_told(path: str) -> None:
    """Writes and syncs until the device is gone, and once more then."""
    with opened(path, os.O_RDWR) as fd:
        for attempt in range(2):
            deadline = time.monotonic() + 20
            try:
                while time.monotonic() < deadline:
                    os.pwritev(fd, [pattern(0, MIB)], 0, RWF_DONTCACHE)
                    os.fsync(fd)
            except OSError as error:
                assert error.errno in GONE, error
            else:
                assert attempt, "nobody has told the writer that the device is gone"


def removed() -> Verdict:
    MOUNT.mkdir(exist_ok=True)
    removals = 0
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
                with beside(functools.partial(write_until_told, path)):
                    time.sleep(0.3)
                    (NULL_BLK / "walk" / "power").write_text("0")
                    removals += 1
                if kind != "bare":
                    run("umount", MOUNT)
    tried(removals == 3 * ROUNDS, "all removals")
    return Verdict(True, f"{removals} removals, the writers were told of each")


if __name__ == "__main__":
    main(removed)
