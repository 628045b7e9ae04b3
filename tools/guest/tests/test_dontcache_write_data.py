#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RWF_DONTCACHE writes on xfs and ext4: the data and the cache.

Needs no file in debugfs that only a kernel with both cores has.
"""

import functools
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
    write_dontcache,
    write_file,
)
from lib.dropping import pages_left


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


PER_FILE_SYSTEM = (every_byte, gone_after_writeback)

if __name__ == "__main__":
    cases = [
        (f"{kind}_{case.__name__}", functools.partial(case, kind))
        for kind in ("xfs", "ext4")
        for case in PER_FILE_SYSTEM
    ]
    ktap.main("dontcache_write_data", cases)
