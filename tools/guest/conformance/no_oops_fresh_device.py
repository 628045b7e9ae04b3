#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""O_DIRECT on a block device just opened, whose inode was never dirtied."""

from __future__ import annotations

import mmap
import os

from devices import null_inline
from dontcache import PAGE, counter, opened, pattern, write_dontcache
from row import Verdict, main


def fresh_device() -> Verdict:
    with null_inline() as node, opened(node, os.O_RDWR | os.O_DIRECT) as fd:
        page = mmap.mmap(-1, PAGE)
        page.write(pattern(0, PAGE))
        write_dontcache(fd, 0, page)
        got = mmap.mmap(-1, PAGE)
        assert os.preadv(fd, [got], 0) == PAGE
        return Verdict(got[:] == page[:] and counter(node) == (0, 0), f"written and read back, counter {counter(node)}")


if __name__ == "__main__":
    main(fresh_device)
