#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RWF_DONTCACHE writes on xfs and ext4: the data and the cache.

Needs no file in debugfs that only a kernel with both cores has.
"""

from __future__ import annotations

import functools
import mmap
import os

from lib import ktap
from lib.dontcache import (
    MIB,
    PAGE,
    cached_pages,
    core,
    file_system,
    opened,
    pattern,
    remount,
    run,
    write_dontcache,
    write_file,
)
from lib.dropping import pages_left


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


def direct_to_a_file(kind: str) -> None:
    """O_DIRECT and RWF_DONTCACHE go together on a file."""
    with file_system(kind) as root:
        with opened(root / "direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT) as fd:
            aligned = mmap.mmap(-1, MIB)
            aligned.write(pattern(0, MIB))
            write_dontcache(fd, 0, aligned)
        remount(kind)
        assert (root / "direct").read_bytes() == pattern(0, MIB)


PER_FILE_SYSTEM = (fio_verify, every_byte, gone_after_writeback, direct_to_a_file)

if __name__ == "__main__":
    cases = [
        (f"{kind}_{case.__name__}", functools.partial(case, kind))
        for kind in ("xfs", "ext4")
        for case in PER_FILE_SYSTEM
    ]
    ktap.main("dontcache_write_data", cases)
