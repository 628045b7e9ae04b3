#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A loop device on a file of xfs, with buffered and direct I/O below, bare and with ext4."""

from __future__ import annotations

import os
from pathlib import Path

from lib.dontcache import MIB, file_system, opened, pattern, run, write_dontcache
from lib.inner import INNER, looped
from lib.row import Verdict, main, tried

SIZE = 8 * MIB


def written(path: Path | str) -> bool:
    """Writes with DONTCACHE; is it there?"""
    with opened(path) as fd:
        for offset in range(0, SIZE, MIB):
            write_dontcache(fd, offset, pattern(offset, MIB))
        os.fsync(fd)
        return os.pread(fd, MIB, MIB) == pattern(MIB, MIB)


def loop() -> Verdict:
    wrong, ways = [], ("off", "on")
    for direct in ways:
        with file_system("xfs") as root, looped(root / "backing", direct) as node:
            tried((Path("/sys/block") / Path(node).name / "loop/dio").read_text() == f"{int(direct == 'on')}\n", "both ways")
            if not written(node):
                wrong.append(f"bare, direct {direct}")
            run("mkfs.ext4", "-q", "-F", node)
            INNER.mkdir(exist_ok=True)
            run("mount", "-t", "ext4", node, INNER)
            try:
                if not written(INNER / "file"):
                    wrong.append(f"ext4, direct {direct}")
            finally:
                run("umount", INNER)
    return Verdict(not wrong, f"what differs: {'; '.join(wrong) or 'nothing'} of bare, ext4, direct {', '.join(ways)}")


if __name__ == "__main__":
    main(loop)
