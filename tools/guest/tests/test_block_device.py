#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RWF_DONTCACHE on the bare drive.

Runs before the scripts that mount it (they go by their names): whoever writes to the drive through
the page cache gives its inode a wb, and the case below is about an inode that has none.
"""

from __future__ import annotations

import mmap
import os

from lib import ktap
from lib.dontcache import NVME, PAGE, core, counter, opened, pattern, write_dontcache


def direct_to_a_fresh_device() -> None:
    """O_DIRECT and RWF_DONTCACHE on a device whose inode was never dirtied, and so has no wb."""
    if core() == "c":
        raise ktap.Skip("the C core dereferences the missing wb and oopses")
    with opened(NVME, os.O_RDWR | os.O_DIRECT) as fd:
        aligned = mmap.mmap(-1, PAGE)
        aligned.write(pattern(0, PAGE))
        write_dontcache(fd, 0, aligned)
        got = mmap.mmap(-1, PAGE)
        assert os.preadv(fd, [got], 0) == PAGE
        assert got[:] == pattern(0, PAGE), "the device holds something else"
    assert counter() == (0, 0), f"the counter is {counter()}"


if __name__ == "__main__":
    ktap.main("block_device", [("direct_to_a_fresh_device", direct_to_a_fresh_device)])
