#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Each way to open (O_DIRECT, O_SYNC, O_DSYNC, O_APPEND) with each RWF flag, on files and on a device."""

from __future__ import annotations

import errno
import itertools
import mmap
import os

from devices import null_timer, target
from dontcache import NVME, PAGE, RWF_DONTCACHE, pattern
from row import Verdict, main, tried

OPEN = {"": 0, "O_DIRECT": os.O_DIRECT, "O_SYNC": os.O_SYNC, "O_DSYNC": os.O_DSYNC, "O_APPEND": os.O_APPEND}
RWF = {"": 0, "NOWAIT": os.RWF_NOWAIT, "APPEND": os.RWF_APPEND, "SYNC": os.RWF_SYNC, "HIPRI": os.RWF_HIPRI}
REFUSALS = (errno.EAGAIN, errno.EOPNOTSUPP)
"""What a write that must not wait, or that the file system does not take, may end with."""


def write_all(fd: int) -> tuple[int, int, list[str]]:
    """A page in each way: how many were written, how many refused, and what differs in the file."""
    written, refused, wrong = 0, 0, []
    path = f"/proc/self/fd/{fd}"
    page = mmap.mmap(-1, PAGE)
    for number, ((how, flags), (extra, rwf)) in enumerate(itertools.product(OPEN.items(), RWF.items())):
        page[:] = pattern(number * PAGE, PAGE)
        appends = "APPEND" in how + extra
        file = os.open(path, os.O_RDWR | flags)
        try:
            at = os.lseek(file, 0, os.SEEK_END) if appends else number * PAGE
            took = os.pwritev(file, [page], at, RWF_DONTCACHE | rwf)
        except OSError as error:
            if error.errno not in REFUSALS and not (appends and error.errno == errno.ENOSPC):
                wrong.append(f"{how}|{extra}: {error}")
            refused += 1
            continue
        finally:
            os.close(file)
        written += 1
        if took != PAGE or os.pread(fd, PAGE, at) != page[:]:
            wrong.append(f"{how}|{extra}: {took} bytes")
    return written, refused, wrong


def flags() -> Verdict:
    figures, wrong = [], []
    with null_timer() as node:
        # Whether a device that was never dirtied is taken is another row's.
        for kind, device in (("bare", node), ("ext4", NVME), ("xfs", NVME)):
            with target(kind, device) as fd:
                os.pwrite(fd, bytes(PAGE), 0)
                os.fsync(fd)
                written, refused, differ = write_all(fd)
                os.fsync(fd)
            figures.append(f"{kind} {written} written, {refused} refused")
            wrong += [f"{kind} {text}" for text in differ]
            tried(written >= 2 * len(OPEN), f"most ways: {figures}")
    return Verdict(not wrong, "; ".join(figures + wrong))


if __name__ == "__main__":
    main(flags)
