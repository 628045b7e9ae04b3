#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RWF_DONTCACHE writes on xfs and ext4: the data and the cache.

Needs no file in debugfs that only a kernel with both cores has.
"""

import functools
import os

from lib import ktap
from lib.dontcache import MIB, PAGE, cached_pages, core, file_system, opened, pattern, remount, write_dontcache, write_pieces
from lib.row import pages_left


def every_byte(kind: str) -> None:
    """Writes, overwrites and unaligned appends are on the drive, each byte in its place."""
    with file_system(kind) as root:
        path, expected = root / "bytes", bytearray()
        over = ((0, b"a" * 100), (PAGE - 1, b"bb"), (MIB + 17, b"c" * 3 * PAGE), (4 * MIB, b"d" * 12345))
        with opened(path) as fd:
            for offset, data in ((0, pattern(0, 4 * MIB)), *over):
                write_dontcache(fd, offset, data)
                expected[offset : offset + len(data)] = data
            os.fsync(fd)
        remount(kind)
        assert path.read_bytes() == expected, "the file differs from what was written"


def gone_after_writeback(kind: str) -> None:
    """Once a new file is on the drive, none of its pages is cached; a buffered file stays."""
    with file_system(kind) as root, opened(root / "buffered") as buffered, opened(root / "dontcache") as fd:
        os.pwrite(buffered, bytes(MIB), 0)
        os.fsync(buffered)
        assert cached_pages(buffered) == MIB // PAGE, "a buffered file lost pages"
        write_pieces(fd, 16 * MIB, MIB)
        os.fsync(fd)
        left = pages_left(fd, 16 * MIB, 10)
        if left and core() == "c":
            raise ktap.Skip(f"the C core does not try again to drop a folio that is in use; pages left: {left}")
        assert not left, f"{left} pages are cached"


ktap.main(
    "dontcache_write_data",
    [
        (f"{kind}_{case.__name__}", functools.partial(case, kind))
        for kind in ("xfs", "ext4")
        for case in (every_byte, gone_after_writeback)
    ],
)
