# SPDX-License-Identifier: GPL-2.0
"""An ordinary read of pages that a DONTCACHE read has read ahead: they must stay."""

import os

from lib.dontcache import KIB, MIB, PAGE, RWF_DONTCACHE, cached_pages, file_system, opened, pattern
from lib.row import Verdict, main, on_each, tried

AHEAD = 64 * KIB


def not_by_readers(kind: str) -> Verdict:
    with file_system(kind) as root, opened(root / "file") as fd:
        os.pwrite(fd, pattern(0, 4 * MIB), 0)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        buffer = bytearray(AHEAD)
        for offset in range(0, 4 * AHEAD, AHEAD):
            os.preadv(fd, [buffer], offset, RWF_DONTCACHE)
        # The pages that readahead has brought and nobody has read.
        there = [offset for offset in range(0, 4 * MIB, PAGE) if cached_pages(fd, PAGE, offset)]
        tried(there, "pages that were read ahead")
        # All at once: what was thrown away is not brought back.
        length = there[-1] + PAGE - there[0]
        assert os.pread(fd, length, there[0]) == pattern(there[0], length)
        left = sum(cached_pages(fd, PAGE, offset) for offset in there)
    return Verdict(left == len(there), f"{left} of {len(there)} pages are there after an ordinary read")


main(lambda: on_each(not_by_readers), breaks_c=True)
