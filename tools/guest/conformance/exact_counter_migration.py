#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Dirty folios that are moved in memory by compaction."""

from __future__ import annotations

from pathlib import Path

from exactness import exact_after
from row import main, tried
from test_dontcache_migration import migrated


def compact(fd: int, path: Path) -> None:
    before = migrated()
    for _ in range(4):
        Path("/proc/sys/vm/compact_memory").write_text("1")
    tried(migrated() > before, "pages that are moved")


if __name__ == "__main__":
    main(lambda: exact_after("compacted", compact))
