# SPDX-License-Identifier: GPL-2.0
"""Dirty pages are invalidated by drop_caches, by POSIX_FADV_DONTNEED, and by an O_DIRECT write over them."""

import mmap
import os
from pathlib import Path

from lib.dontcache import MIB, counter, opened
from lib.row import exact_after, main, tried


def invalidate(fd: int, path: Path) -> None:
    before = counter()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    os.posix_fadvise(fd, 0, MIB, os.POSIX_FADV_DONTNEED)
    with opened(path, os.O_RDWR | os.O_DIRECT) as direct:
        os.pwritev(direct, [mmap.mmap(-1, MIB)], 2 * MIB)
    tried(counter()[1] < before[1], "dirty pages that are invalidated")


main(lambda: exact_after("invalidated", invalidate))
