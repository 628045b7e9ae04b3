# SPDX-License-Identifier: GPL-2.0
"""Truncation splits large dirty folios of xfs."""

import os

from lib.dontcache import PAGE, file_system, flusher_held, held, opened
from lib.row import NOTHING, PIECE, SIZE, Verdict, dirty, exact, held_counter, main, synced_counter, told, tried
from lib.walk import folio_frames

PIECES = SIZE // PIECE
SPLITS = PIECES // 2


def split() -> Verdict:
    """Not on ext4: it keeps the buffers of a dirty folio, and with them the folio."""
    with file_system("xfs") as root, opened(root / "file") as fd:
        # What is not on the drive yet would be written before it is cut off.
        dirty(fd)
        os.fsync(fd)
        with held(), flusher_held():
            dirty(fd)
            before = held_counter()
            _, whole = folio_frames(fd, 0)
            for number in range(SPLITS):
                os.ftruncate(fd, SIZE - number * PIECE - PIECE // 2)
            after = held_counter()
            os.ftruncate(fd, SIZE)
            _, part = folio_frames(fd, (PIECES - SPLITS) * PIECE)
        end = synced_counter()
    kept = exact(before) and exact(after) and end == NOTHING
    tried(not kept or part < whole == PIECE // PAGE, f"folios that are split: {whole} pages, then {part}")
    tried(not kept or before[1] == SIZE // PAGE, f"folios that are dirty: {told(before)}")
    tried(not kept or after[1] >= before[1] // 2 - whole, f"folios that stay dirty: {told(after)}")
    return Verdict(kept, f"xfs {told(before)}, {SPLITS} splits {told(after)}, synced {told(end)}")


main(split)
