#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A file system that is frozen (FIFREEZE) and thawed while writers run."""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path

from dontcache import MIB, file_system, opened, pattern, run, write_dontcache
from row import SHORT, Verdict, main, tried
from walk import beside

SECONDS = 2 if SHORT else 10


def write_for_a_while(path: Path) -> None:
    """Writes the file again and again."""
    deadline = time.monotonic() + SECONDS
    with opened(path) as fd:
        while time.monotonic() < deadline:
            for offset in range(0, MIB, MIB // 4):
                write_dontcache(fd, offset, pattern(offset, MIB // 4))
            os.fdatasync(fd)


def frozen() -> Verdict:
    freezes, wrong = 0, 0
    for kind in ("ext4", "xfs"):
        with file_system(kind) as root:
            paths = [root / name for name in ("one", "two")]
            with beside(functools.partial(write_for_a_while, paths[0])), beside(
                functools.partial(write_for_a_while, paths[1])
            ):
                deadline = time.monotonic() + SECONDS
                while time.monotonic() < deadline:
                    run("fsfreeze", "--freeze", root)
                    time.sleep(0.05)
                    run("fsfreeze", "--unfreeze", root)
                    freezes += 1
                    time.sleep(0.05)
            wrong += sum(path.read_bytes() != pattern(0, MIB) for path in paths)
    tried(freezes >= 2 * SECONDS, f"{freezes} freezes are too few")
    return Verdict(wrong == 0, f"{freezes} freezes; {wrong} files differ")


if __name__ == "__main__":
    main(frozen)
