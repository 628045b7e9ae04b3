#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RWF_DONTCACHE writes on xfs and ext4: the data, the cache, the counter, the flusher."""

from __future__ import annotations

import functools
import mmap
import os
import re
from pathlib import Path

from lib import ktap
from lib.dontcache import (
    MIB,
    NVME,
    PAGE,
    cached_pages,
    cgroup,
    core,
    counter,
    file_system,
    flusher_held,
    in_cgroup,
    opened,
    pattern,
    remount,
    run,
    trace,
    until,
    write_dontcache,
)
from lib.dropping import pages_left


def write_file(path: Path, size: int, block: int, sync: bool = True) -> int:
    """Writes a new file with DONTCACHE; returns how many writes that took."""
    with opened(path) as fd:
        for offset in range(0, size, block):
            write_dontcache(fd, offset, pattern(offset, block))
        if sync:
            os.fsync(fd)
    return size // block


def fio_verify(kind: str) -> None:
    """fio writes with uncached=1 through io_uring, and finds its data after a remount."""
    common = [
        "fio", "--name=verify", "--filename=/tmp/mnt/verify", "--ioengine=io_uring", "--iodepth=16",
        "--rw=randwrite", "--bsrange=4k-256k", "--size=32m", "--verify=crc32c", "--verify_state_save=0", "--randseed=7",
        "--minimal",
    ]  # fmt: skip
    with file_system(kind):
        run(*common, "--uncached=1", "--do_verify=0")
        remount(kind)
        run(*common, "--verify_only=1")


def every_byte(kind: str) -> None:
    """Writes, overwrites and unaligned appends are on the drive, each byte in its place."""
    with file_system(kind) as root:
        path = root / "bytes"
        size = write_file(path, 4 * MIB, 256 * 1024, sync=False) and 4 * MIB
        expected = bytearray(pattern(0, size))
        with opened(path) as fd:
            for offset, length in ((0, 100), (PAGE - 1, 2), (MIB + 17, 3 * PAGE), (size, 12345)):
                data = bytes([offset % 251]) * length
                write_dontcache(fd, offset, data)
                expected[offset : offset + length] = data
            os.fsync(fd)
        remount(kind)
        assert path.read_bytes() == expected, "the file differs from what was written"


def gone_after_writeback(kind: str) -> None:
    """Once a new file is on the drive, none of its pages is cached; a buffered file stays."""
    with file_system(kind) as root:
        (root / "buffered").write_bytes(bytes(MIB))
        os.sync()
        with opened(root / "buffered") as fd:
            assert cached_pages(fd) == MIB // PAGE, "a buffered file lost pages"
        write_file(root / "dontcache", 16 * MIB, MIB)
        with opened(root / "dontcache") as fd:
            left = pages_left(fd, 16 * MIB, 10)
        if left and core() == "c":
            raise ktap.Skip(f"the C core does not try again to drop a folio that is in use; pages left: {left}")
        assert not left, f"{left} pages are cached"


def zero_after_sync(kind: str) -> None:
    """The counter moves, agrees with the walk, and is zero when all is written.

    With whatever may happen to a dirty dropbehind folio on the way: an ordinary read, an ordinary
    write, a mapping, a hole, a truncation.
    """
    with file_system(kind) as root:
        path = root / "mixed"
        counted = 0
        with opened(path) as fd, trace("writeback/writeback_start") as lines:
            for offset in range(0, 32 * MIB, MIB):
                write_dontcache(fd, offset, pattern(offset, MIB))
                counted = max(counted, counter()[0])
                os.pread(fd, PAGE, offset)
                os.pwrite(fd, b"ordinary", offset + 64 * 1024)
            with mmap.mmap(fd, MIB) as mapping:
                mapping[0:8] = b"mapped!!"
            run("fallocate", "--punch-hole", "--offset", 3 * MIB + 5, "--length", MIB, path)
            os.ftruncate(fd, 20 * MIB + 7)
            os.fsync(fd)
            # C kicks at once: what was counted is seen in what the flusher has read.
            rounds = re.findall(r"nr_pages=(\d+) .*reason=dontcache", "\n".join(lines()))
        assert counted or any(int(pages) for pages in rounds), f"the counter did not move: {rounds}"
        os.sync()
        until(lambda: counter() == (0, 0), 10, f"the counter is {counter()}")


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


def direct_to_a_file(kind: str) -> None:
    """O_DIRECT and RWF_DONTCACHE go together on a file."""
    with file_system(kind) as root:
        with opened(root / "direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT) as fd:
            aligned = mmap.mmap(-1, MIB)
            aligned.write(pattern(0, MIB))
            write_dontcache(fd, 0, aligned)
        remount(kind)
        assert (root / "direct").read_bytes() == pattern(0, MIB)


PER_FILE_SYSTEM = (
    fio_verify,
    every_byte,
    gone_after_writeback,
    zero_after_sync,
    reason_and_coalescing,
    own_domain,
    synchronous_needs_no_kick,
    direct_to_a_file,
)

if __name__ == "__main__":
    cases = [
        (f"{kind}_{case.__name__}", functools.partial(case, kind))
        for kind in ("xfs", "ext4")
        for case in PER_FILE_SYSTEM
    ]
    ktap.main("dontcache_write", cases)
