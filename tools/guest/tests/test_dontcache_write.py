#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RWF_DONTCACHE writes on xfs and ext4: the counter, the flusher."""

import functools
import os

from lib import ktap
from lib.dontcache import (
    MIB,
    NVME,
    cgroup,
    counter,
    file_system,
    flusher_held,
    in_cgroup,
    opened,
    pattern,
    trace,
    until,
    write_dontcache,
    write_file,
)


def reason_and_coalescing(kind: str) -> None:
    """The flusher says why it writes, and writers who find it asked already do not wake it."""
    block = 16 * 1024
    with file_system(kind) as root:
        events = ("writeback/writeback_start", "workqueue/workqueue_queue_work")
        with trace(*events) as lines:
            with flusher_held():
                writes = write_file(root / "traced", 16 * MIB, block, sync=False)
            until(lambda: counter()[0] == 0, 30, "the flusher is done")
            seen = lines()
        number = os.stat(NVME).st_rdev
        device = f"bdi {os.major(number)}:{os.minor(number)}:"
        rounds = [line for line in seen if device in line and "reason=dontcache" in line]
        wakeups = [line for line in seen if "function=wb_workfn" in line]
        assert rounds, "no writeback_start with reason=dontcache"
        assert 0 < len(wakeups) < writes / 2, f"{len(wakeups)} wake-ups for {writes} writes"


def own_domain(kind: str) -> None:
    """Pages that a cgroup's writer dirties are kicked out by the cgroup's own wb."""
    with file_system(kind) as root, cgroup("dontcache") as group:
        inode = group.stat().st_ino
        with trace("writeback/writeback_start") as lines:
            in_cgroup(group, lambda: write_file(root / "grouped", 8 * MIB, MIB, False))
            until(lambda: counter()[0] == 0, 30, "the flusher is done")
            seen = [line for line in lines() if "reason=dontcache" in line]
        assert any(f"cgroup_ino={inode}" in line for line in seen), f"not by cgroup {inode}: {seen}"
        os.sync()
        assert counter() == (0, 0), f"the counter is {counter()}"


def synchronous_needs_no_kick(kind: str) -> None:
    """An O_DSYNC write is on the drive when it returns; nobody is kicked for it."""
    with file_system(kind) as root:
        with trace("writeback/writeback_start") as lines:
            with opened(root / "dsync", os.O_RDWR | os.O_CREAT | os.O_DSYNC) as fd:
                write_dontcache(fd, 0, pattern(0, MIB))
                assert counter() == (0, 0), f"the counter is {counter()}"
            seen = [line for line in lines() if "reason=dontcache" in line]
        assert not seen, f"kicked by a synchronous write: {seen}"


PER_FILE_SYSTEM = (reason_and_coalescing, own_domain, synchronous_needs_no_kick)

if __name__ == "__main__":
    cases = [
        (f"{kind}_{case.__name__}", functools.partial(case, kind))
        for kind in ("xfs", "ext4")
        for case in PER_FILE_SYSTEM
    ]
    ktap.main("dontcache_write", cases)
