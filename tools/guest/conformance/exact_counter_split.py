#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Large folios that are split while they are dirty, by truncation: those of xfs that were written as a whole."""

from __future__ import annotations

import os

from dontcache import PAGE, file_system, flusher_held, opened
from exactness import PIECE, SIZE, dirty, told
from row import Verdict, main, settled_counter, synced_counter, tried
from walk import folio_pages

PIECES = SIZE // PIECE
SPLITS = PIECES // 2


def split() -> Verdict:
    """Not on ext4: it keeps the buffers of a dirty folio, and with them the folio."""
    with file_system("xfs") as root, opened(root / "file") as fd:
        # What is not on the drive yet would be written before it is cut off.
        dirty(fd)
        os.fsync(fd)
        with flusher_held():
            dirty(fd)
            before = settled_counter()
            whole = folio_pages(fd, 0)
            for number in range(SPLITS):
                os.ftruncate(fd, SIZE - number * PIECE - PIECE // 2)
            after = settled_counter()
            os.ftruncate(fd, SIZE)
            part = folio_pages(fd, (PIECES - SPLITS) * PIECE)
        end = synced_counter()
    tried(part < whole == PIECE // PAGE, f"folios that are split: {whole} pages, then {part}")
    tried(before[0] == before[1] == SIZE // PAGE, f"an exact start: {told(before)}")
    tried(after[1] >= before[1] // 2 - whole, f"folios that stay dirty: {told(after)}")
    kept = after[0] == after[1] and end[0] == 0
    return Verdict(kept, f"xfs {told(before)}, {SPLITS} splits {told(after)}, synced {told(end)}")


if __name__ == "__main__":
    main(split)
