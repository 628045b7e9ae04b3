#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Dirty folios that are moved in memory, while the flusher is busy with others on a slow drive."""

from __future__ import annotations

import array
import mmap
import os
from pathlib import Path

from dontcache import MIB, cachestat, core, file_system, opened
from exactness import dirty, told
from knobs import never_many, never_periodic
from row import BOUND, Verdict, main, settled_counter, synced_counter, tried, waited
from slow import SPEED, slow_drive
from walk import beside

MUCH = 4 * SPEED
"""What the drive writes in four seconds."""
ROOM = 512 * MIB
"""What is free when memory is compacted, and was not when the pages were dirtied."""

KPF_COUNTED = 1 << 42
"""The Rust core's flag of a folio that is counted: PG_arch_3."""


def counted_frames() -> set[int]:
    """The page frames that the Rust core has counted."""
    flags = array.array("Q")
    with open("/proc/kpageflags", "rb", buffering=0) as kpageflags:
        while some := kpageflags.read(MIB):
            flags.frombytes(some)
    return {frame for frame, of_it in enumerate(flags) if of_it & KPF_COUNTED}


def migration() -> Verdict:
    figures, kept = [], True
    for kind in ("ext4", "xfs"):
        with slow_drive() as disk, file_system(kind, disk.device) as root, never_periodic(), never_many():
            with opened(root / "much") as much, opened(root / "file") as fd:
                for offset in range(0, MUCH, MIB):
                    os.pwrite(much, bytes(MIB), offset)
                with beside(os.sync):
                    started = waited(lambda: cachestat(much).writeback > 0, BOUND)
                    tried(started is not None, "a flusher that has begun")
                    with mmap.mmap(-1, ROOM, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE):
                        dirty(fd)
                    before, frames = settled_counter(disk.device), counted_frames()
                    Path("/proc/sys/vm/compact_memory").write_text("1")
                    after, still = settled_counter(disk.device), cachestat(fd).dirty
                    # The C core has no flag to look for, but forgets what was moved.
                    moved = len(frames - counted_frames()) if core() == "rust" else still - after[1]
                    os.ftruncate(much, 0)  # nobody needs it any more
                end = synced_counter(disk.device)
        tried(before[1] == still, f"pages that stay dirty: {before[1]}, {still}")
        tried(before[0] == before[1], f"an exact start: {told(before)}")
        tried(moved, f"pages that are moved, of {kind}")
        kept &= after[0] == after[1] and end[0] == 0
        figures.append(f"{kind} {told(before)}, {moved} moved {told(after)}, synced {told(end)}")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(migration)
