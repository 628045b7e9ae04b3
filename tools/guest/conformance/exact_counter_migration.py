#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Dirty folios that are moved in memory by compaction."""

from __future__ import annotations

from pathlib import Path

from exactness import dirty, exact_after
from row import main, tried
from test_dontcache_migration import migrated


def compact(fd: int, path: Path) -> None:
    before = migrated()
    # Compaction sleeps now and then, and the flusher has its turn: what it has left is moved.
    for _ in range(4):
        Path("/proc/sys/vm/compact_memory").write_text("1")
        dirty(fd)
    tried(migrated() > before, "pages that are moved")


if __name__ == "__main__":
    main(lambda: exact_after("compacted", compact))
