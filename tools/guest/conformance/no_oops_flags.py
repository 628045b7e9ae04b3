# SPDX-License-Identifier: GPL-2.0
"""Combinations of O_DIRECT, O_SYNC, O_DSYNC, O_APPEND and RWF flags, by each interface, to files and a block device.

Each is taken where the kernel documents that it is, and refused where it documents that.
"""

import os

from lib.devices import null_timer, target
from lib.dontcache import MOUNT, NVME, PAGE, run
from lib.row import Verdict, main, on_each
from lib.ways import write_each_way

SIZE = 1024 * PAGE
"""More than one page for each way."""


def flags(kind: str) -> Verdict:
    # Whether a device that was never dirtied is taken is another row's.
    with null_timer() as node, target(kind, node if kind == "bare" else NVME) as fd:
        # What must not wait is written where there are blocks, and where no time has to be noted.
        os.pwrite(fd, bytes(SIZE), 0)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        if kind != "bare":
            run("mount", "-o", "remount,lazytime", MOUNT)
        wrong = write_each_way(fd, kind)
        os.fsync(fd)
    return Verdict(not wrong, "; ".join(wrong) or "each way as documented")


main(lambda: on_each(flags, ("bare", "ext4", "xfs")))
