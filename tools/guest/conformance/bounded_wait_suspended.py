# SPDX-License-Identifier: GPL-2.0
"""syncfs() and drops on one drive while another drive is suspended, with writers on all CPUs"""

import os
import time
from functools import partial
from pathlib import Path

from lib.devices import DISK_MIB, INNER, mapped, null_timer, suspended
from lib.dontcache import KIB, MIB, NVME, cachestat, file_system, in_child, opened, syncfs, waited, write_pieces
from lib.row import BOUND, PATIENCE, Verdict, main, on_each, pages_left, tried

SIZE, PIECE = 4 * MIB, 64 * KIB
TIMES = 10


def write(fd: int, cpu: int) -> None:
    """Writes a part of its own of the file, on that CPU."""
    os.sched_setaffinity(0, {cpu})
    write_pieces(fd, SIZE, PIECE, start=cpu * SIZE)


def write_everywhere(fd: int) -> None:
    in_child(*(partial(write, fd, cpu) for cpu in os.sched_getaffinity(0)))


def beside(kind: str, node: str, other: Path) -> tuple[float, int]:
    """The longest syncfs() of the other file system, and the pages that stay there, while this drive is suspended."""
    longest, left = 0.0, 0
    with file_system(kind, node) as root, opened(root / "file") as stuck, opened(other / "file") as fd:
        # The file has its places, or the flusher would wait for a read of the drive's bitmaps.
        write_everywhere(stuck)
        os.fsync(stuck)
        with suspended(node):
            write_everywhere(stuck)
            tried(waited(lambda: cachestat(stuck).writeback > 0, PATIENCE) is not None, "writes that cannot end")
            for _ in range(TIMES):
                write_everywhere(fd)
                begin = time.monotonic()
                syncfs(fd)
                longest = max(longest, time.monotonic() - begin)
                left += pages_left(fd, len(os.sched_getaffinity(0)) * SIZE, PATIENCE)
            tried(cachestat(stuck).writeback > 0, "a drive that is suspended to the end")
    return longest, left


def other_drive(kind: str) -> Verdict:
    with null_timer() as disk, mapped("suspended", DISK_MIB, f"linear {NVME} 0") as node:
        with file_system(kind, disk, root=INNER):
            longest, left = beside(kind, node, INNER)
    return Verdict(longest <= BOUND and not left, f"the longest of {TIMES} syncs took {longest:.2f} s, {left} pages stay")


main(lambda: on_each(other_drive), breaks_c=True, stacks=True)
