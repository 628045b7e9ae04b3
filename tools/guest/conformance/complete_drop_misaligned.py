# SPDX-License-Identifier: GPL-2.0
"""A file is overwritten in pieces that begin and end within pages; no page may be read twice or stay.

First every other piece is written, in order, then the pieces between them, in reverse. Each page that two pieces share
has to wait in the page cache for the second of them.
"""

import os
import time
from pathlib import Path

from lib.dontcache import cached_pages, drive_stat, file_system, opened, waited, write_dontcache
from lib.row import SHORT, Verdict, main, on_each, tried

PIECE, PIECES = 47_008, 150 if SHORT else 300
"""A page waits for half a second at least. A slow host needs longer to write the second half of 300 pieces."""
ORDER = [*range(0, PIECES, 2), *reversed(range(1, PIECES, 2))]
SIZE = PIECE * PIECES
PAUSE = 0.1
"""Seconds between the two halves: pages leave within 50 ms of their writeback."""
MOST = 1.1
"""Reads of the drive, beside those of buffered writes."""
SOON = 0.5
"""Seconds after fsync() within which the pages leave that two pieces have filled. One that was read twice waits again."""
GONE = 1
"""Seconds after fsync() within which the last page has left, too. It waits for 600 ms, for the file may grow."""


def content(number: int) -> bytes:
    return bytes([number % 251 + 1]) * PIECE


def overwrite(fd: int, dontcache: bool) -> int:
    """Overwrites the file, whose pages are not cached, and returns how many reads of the drive that took."""
    os.pwrite(fd, bytes(SIZE), 0)
    os.fsync(fd)
    Path("/proc/sys/vm/drop_caches").write_text("3")
    before = drive_stat()[0]
    for number in ORDER:
        if number == ORDER[PIECES // 2]:
            # What the first half shares with the second is on the drive, and could be dropped.
            os.fsync(fd)
            time.sleep(PAUSE)
        if dontcache:
            write_dontcache(fd, number * PIECE, content(number))
        else:
            os.pwrite(fd, content(number), number * PIECE)
    os.fsync(fd)
    return drive_stat()[0] - before


def misaligned(kind: str) -> Verdict:
    with file_system(kind) as root, opened(root / "file") as fd:
        buffered = overwrite(fd, dontcache=False)
        tried(buffered > PIECES / 2, f"pages that two pieces share: {buffered} read")
        dontcache, synced = overwrite(fd, dontcache=True), time.monotonic()
        again = max(dontcache - buffered, 0)
        soon = waited(lambda: cached_pages(fd) <= 1 + again, SOON)
        left = cached_pages(fd)
        gone = waited(lambda: not cached_pages(fd), synced + GONE - time.monotonic())
        right = all(os.pread(fd, PIECE, number * PIECE) == content(number) for number in range(PIECES))
    kept = dontcache <= MOST * buffered and soon is not None and gone is not None and right
    told = f"{left} pages left after {SOON} s" + ("" if gone is not None else f", not gone after {GONE} s")
    wrong = "" if right else ", other content"
    return Verdict(kept, f"{dontcache} reads (buffered {buffered}), {told}{wrong}")


main(lambda: on_each(misaligned), breaks_c=True)
