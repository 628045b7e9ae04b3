#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A loop device on a file of xfs, bare and with ext4 on it: the writers and the loop's worker at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from dontcache import MIB, file_system, opened, pattern, run, write_dontcache
from row import Verdict, main

INNER = Path("/tmp/inner")


@contextlib.contextmanager
def looped(backing: Path) -> Iterator[str]:
    with open(backing, "wb") as file:
        file.truncate(64 * MIB)
    node = run("losetup", "--find", "--show", backing).strip()
    try:
        yield node
    finally:
        run("losetup", "--detach", node)


def loop() -> Verdict:
    with file_system("xfs") as root, looped(root / "backing") as node:
        with opened(node, os.O_RDWR) as fd:
            for offset in range(0, 8 * MIB, MIB):
                write_dontcache(fd, offset, pattern(offset, MIB))
            os.fsync(fd)
            bare = os.pread(fd, MIB, MIB) == pattern(MIB, MIB)
        run("mkfs.ext4", "-q", "-F", node)
        INNER.mkdir(exist_ok=True)
        run("mount", "-t", "ext4", node, INNER)
        try:
            with opened(INNER / "file") as fd:
                for offset in range(0, 8 * MIB, MIB):
                    write_dontcache(fd, offset, pattern(offset, MIB))
                os.fsync(fd)
                inner = os.pread(fd, MIB, MIB) == pattern(MIB, MIB)
        finally:
            run("umount", INNER)
    wrong = [name for name, right in (("bare", bare), ("ext4", inner)) if not right]
    return Verdict(not wrong, f"what differs: {', '.join(wrong) or 'nothing'} of bare, ext4")


if __name__ == "__main__":
    main(loop)
