# SPDX-License-Identifier: GPL-2.0
"""A queue of buffered and of O_DIRECT writes through aio (io_submit), to files and to a block device."""

import mmap
import os

from lib.devices import null_timer, target
from lib.dontcache import NVME, PAGE, is_there, opened, pattern
from lib.row import Verdict, main, on_each
from lib.ways import queue_aio

DEPTH = 32


def aio(kind: str) -> Verdict:
    wrong = []
    pages = mmap.mmap(-1, DEPTH * PAGE)
    pages.write(pattern(0, DEPTH * PAGE))
    with null_timer() as node:
        for flags in (0, os.O_DIRECT):
            with target(kind, node if kind == "bare" else NVME) as fd:
                os.pwrite(fd, bytes(PAGE), 0)
                os.fsync(fd)
                with opened(f"/proc/self/fd/{fd}", os.O_RDWR | flags) as file:
                    took = queue_aio(file, pages, 0)
                if took != [PAGE] * DEPTH or not is_there(fd, 0, pages):
                    wrong.append(f"took {took}")
    return Verdict(not wrong, "; ".join(wrong) or "all writes are in their place")


main(lambda: on_each(aio, ("bare", "ext4", "xfs")))
