#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""O_DIRECT over blocks that a file has, after a mount: its inode was never dirtied."""

from __future__ import annotations

import mmap
import os

from dontcache import MIB, PAGE, file_system, opened, pattern, remount, write_dontcache
from row import Verdict, main


def never_dirtied() -> Verdict:
    wrong = []
    for kind in ("ext4", "xfs"):
        with file_system(kind) as root:
            with opened(root / "file") as fd:
                os.pwrite(fd, bytes(MIB), 0)
            remount(kind)
            page = mmap.mmap(-1, PAGE)
            page.write(pattern(PAGE, PAGE))
            with opened(root / "file", os.O_RDWR | os.O_DIRECT) as fd:
                write_dontcache(fd, PAGE, page)
            remount(kind)
            if (root / "file").read_bytes()[PAGE : 2 * PAGE] != page[:]:
                wrong.append(kind)
    return Verdict(not wrong, f"files that differ: {', '.join(wrong) or 'none'} of ext4, xfs")


if __name__ == "__main__":
    main(never_dirtied)
