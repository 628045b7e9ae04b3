#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Dirty folios that are moved in memory: compaction again and again beside a DONTCACHE writer."""

from __future__ import annotations

from pathlib import Path

from dontcache import MIB, file_system, opened, write_dontcache
from exactness import told
from row import KIB, Verdict, main, synced_counter, tried
from test_dontcache_migration import migrated

SIZE = 64 * MIB
PIECE = 64 * KIB


def migration() -> Verdict:
    figures, kept = [], True
    for kind in ("ext4", "xfs"):
        before = migrated()
        with file_system(kind) as root, opened(root / "file") as fd:
            for offset in range(0, SIZE, PIECE):
                write_dontcache(fd, offset, bytes(PIECE))
                if offset % (2 * MIB) == 0:
                    Path("/proc/sys/vm/compact_memory").write_text("1")
            moved = migrated() - before
            end = synced_counter()
        tried(moved, f"pages that are moved, of {kind}")
        kept &= end[0] == 0
        figures.append(f"{kind} {moved} pages moved, synced {told(end)}")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(migration)
