#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""O_DIRECT overwrites of a file after a mount, when its inode was never dirtied, through each interface."""

from __future__ import annotations

import mmap
import os

from lib.dontcache import MIB, PAGE, file_system, opened, pattern, remount
from lib.interfaces import INTERFACES
from lib.row import Verdict, main
from lib.ways import write_each_way


def never_dirtied() -> Verdict:
    figures, wrong = [], []
    page = mmap.mmap(-1, PAGE)
    page.write(pattern(PAGE, PAGE))
    for kind in ("ext4", "xfs"):
        with file_system(kind) as root:
            for name in INTERFACES:
                with opened(root / name) as fd:
                    os.pwrite(fd, bytes(4 * MIB), 0)
            remount(kind)
            for name, write in INTERFACES.items():
                with opened(root / name, os.O_RDWR | os.O_DIRECT) as fd:
                    write(fd, page, PAGE, 0)
                with opened(root / name) as fd:
                    never = frozenset({"O_APPEND", "APPEND"})
                    outcome = write_each_way(fd, kind, always=frozenset({"O_DIRECT"}), never=never, waits=True)
                outcome.tried()
                figures.append(f"{kind} {outcome}")
                wrong += [f"{kind} {text}" for text in outcome.wrong]
            remount(kind)
            wrong += [f"{kind} {name} differs" for name in INTERFACES if (root / name).read_bytes()[PAGE : 2 * PAGE] != page[:]]
    return Verdict(not wrong, "; ".join(figures + wrong))


if __name__ == "__main__":
    main(never_dirtied)
