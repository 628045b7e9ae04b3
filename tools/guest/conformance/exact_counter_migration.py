# SPDX-License-Identifier: GPL-2.0
"""Compaction migrates dirty folios again and again beside a DONTCACHE writer."""

import array
import os
from pathlib import Path

from lib.dontcache import MIB, PAGE, core, file_system, held, migrated, opened, write_dontcache
from lib.row import NOTHING, Verdict, exact, main, on_each, pages_left, quiet_counter, synced_counter, told, tried

SIZE = 16 * MIB
LARGE = 16 * PAGE
PIECES = (LARGE, PAGE) * 2
"""What is written at once, and is a folio: compaction ends early at a large one of ext4 that is dirty."""
MANY = MIB // PAGE
"""More than a file system itself has dirty."""

KPF_DIRTY, KPF_ANON, KPF_SWAPBACKED = 1 << 4, 1 << 12, 1 << 14


def dirty_frames() -> set[int]:
    """The page frames of files that are dirty: of memory and tmpfs all may be."""
    flags = array.array("Q")
    with open("/proc/kpageflags", "rb", buffering=0) as kpageflags:
        while some := kpageflags.read(MIB):
            flags.frombytes(some)
    of_files = KPF_DIRTY | KPF_ANON | KPF_SWAPBACKED
    return {frame for frame, of_it in enumerate(flags) if of_it & of_files == KPF_DIRTY}


def compact() -> None:
    """Moves pages that can be moved to one end of memory."""
    Path("/proc/sys/vm/compact_memory").write_text("1")


def dirty(fd: int, between: int, piece: int) -> None:
    """Writes folios with DONTCACHE, and makes gaps between them, which is what compaction moves them into.

    Some compaction on the way is for a core that cannot be kept from writing.
    """
    for offset in range(0, SIZE, piece):
        write_dontcache(fd, offset, bytes(piece))
        os.pwrite(between, bytes(piece), offset)
        if core() == "c" and offset % (2 * LARGE) == 0:
            compact()
    os.ftruncate(between, 0)


def migration(kind: str) -> Verdict:
    before, own, stay, kept = migrated(), 0, "", True
    with file_system(kind) as root, held(), opened(root / "file") as fd, opened(root / "between") as between:
        for nr, piece in enumerate(PIECES):
            dirty(fd, between, piece)
            frames = dirty_frames()
            compact()
            own += len(dirty_frames() - frames)
            if core() == "rust":
                counted = quiet_counter()
                kept &= exact(counted)
                tried(not kept or counted[1], f"dirty pages that stay: {told(counted)}")
            if nr < len(PIECES) // 2:
                # What has moved is written and dropped; in the other half it is truncated while it is dirty.
                os.fsync(fd)
                if left := pages_left(fd, SIZE, 10) if core() == "rust" else 0:
                    kept, stay = False, f", {left} pages stay"
            os.ftruncate(fd, 0)
            end = synced_counter()
            kept &= end == NOTHING
    moved = migrated() - before
    tried(not kept or (own > MANY if core() == "rust" else moved), f"dirty pages that are moved: {own}")
    whose = f", {own} of them dirty, then {told(counted)}" if core() == "rust" else ""
    return Verdict(kept, f"{moved} pages moved{whose}{stay}, in the end {told(end)}")


main(lambda: on_each(migration), breaks_c=True)
