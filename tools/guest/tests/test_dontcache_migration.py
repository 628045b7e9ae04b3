#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A dirty dropbehind folio that is moved in memory stays one, and stays counted."""

from __future__ import annotations

import os
from pathlib import Path

from lib import ktap
from lib.dontcache import MIB, cached_pages, core, counter, file_system, migrated, opened, pattern, until, write_dontcache


def compaction_keeps_the_count() -> None:
    """Compacts all memory again and again while DONTCACHE pages are dirty."""
    if core() == "c":
        raise ktap.Skip("the C core loses dropbehind in migration, and the count stays behind")
    before = migrated()
    with file_system("xfs") as root, opened(root / "moved") as fd:
        for offset in range(0, 64 * MIB, 64 * 1024):
            write_dontcache(fd, offset, pattern(offset, 64 * 1024))
            if offset % (2 * MIB) == 0:
                Path("/proc/sys/vm/compact_memory").write_text("1")
        os.fsync(fd)
        assert migrated() > before, "nothing was moved"
        until(lambda: counter() == (0, 0), 10, f"the counter is {counter()}")
        until(lambda: cached_pages(fd) == 0, 10, "no page cached")


if __name__ == "__main__":
    ktap.main("dontcache_migration", [("compaction_keeps_the_count", compaction_keeps_the_count)])
