# SPDX-License-Identifier: GPL-2.0
"""ext4 with and without delayed allocation and with data=journal; the writer's buffer is not in memory yet."""

import itertools
import mmap
import os

from lib.dontcache import KIB, MIB, NVME, PAGE, RWF_DONTCACHE, file_system, opened
from lib.row import Verdict, main, nothing_left, pages_left

MODES = ("delalloc", "nodelalloc", "data=journal")
BLOCKS = (4 * KIB, KIB)
PIECE = 256 * KIB
UNALIGNED = 32
"""Where in a page the memory begins: what is copied before a fault ends within a block."""
SECONDS = 2


def write_file(fd: int) -> None:
    """Each write is from fresh memory, so that its copying stops at each page of it."""
    for offset in range(0, 2 * MIB, PIECE):
        with mmap.mmap(-1, PIECE + PAGE) as memory, memoryview(memory) as view:
            with view[UNALIGNED : UNALIGNED + PIECE] as data:
                assert os.pwritev(fd, [data], offset, RWF_DONTCACHE) == PIECE


def modes() -> Verdict:
    left = {}
    for mode, block in itertools.product(MODES, BLOCKS):
        with file_system("ext4", NVME, "-b", block, mode=mode) as root, opened(root / "file") as fd:
            write_file(fd)
            os.fsync(fd)
            left[f"{mode} {block // KIB}k"] = pages_left(fd, 2 * MIB, SECONDS)
    return nothing_left(left)


main(modes, breaks_c=True)
