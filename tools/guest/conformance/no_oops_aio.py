# SPDX-License-Identifier: GPL-2.0
"""A queue of buffered and of O_DIRECT writes through aio (io_submit), to files and to a block device."""

import mmap
import os

from lib.devices import null_timer, target
from lib.dontcache import NVME, PAGE, opened, pattern
from lib.interfaces import queue_aio
from lib.row import Verdict, main

DEPTH = 32


def aio() -> Verdict:
    wrong, writes = [], 0
    pages = mmap.mmap(-1, DEPTH * PAGE)
    pages.write(pattern(0, DEPTH * PAGE))
    with null_timer() as node:
        for kind, device in (("bare", node), ("ext4", NVME), ("xfs", NVME)):
            for flags in (0, os.O_DIRECT):
                with target(kind, device) as fd:
                    os.pwrite(fd, bytes(PAGE), 0)
                    os.fsync(fd)
                    with opened(f"/proc/self/fd/{fd}", os.O_RDWR | flags) as file:
                        took = queue_aio(file, pages, 0)
                    if took != [PAGE] * DEPTH or os.pread(fd, DEPTH * PAGE, 0) != pages[:]:
                        wrong.append(f"{kind} took {took}")
                    writes += len(took)
    return Verdict(not wrong, "; ".join(wrong) or f"{writes} writes, all in their place")


main(aio)
