# SPDX-License-Identifier: GPL-2.0
"""Logs that grow by 700 bytes every 1 ms or 100 ms; the last page must not be read back from the drive.

Reading it back would make the writer wait. The page must not be written again and again either, and has to be dropped
once the log rests.
"""

import os
import time

from lib.dontcache import cached_pages, drive_stat, file_system, opened, waited, write_dontcache
from lib.row import SHORT, Verdict, main, on_each, tried

FAST_SECONDS = 5 if SHORT else 60
SLOW_SECONDS = 5 if SHORT else 20
RECORD = 700
FAST = 0.001
SLOW = 0.1
"""Seconds between two records. The page at the end of the fast one is dirty again before it could be dropped, that of
the slow one is written at each round, and rests until the next record."""
GONE = 3
"""Seconds within which a log that rests has left the page cache."""

MOST = 1.1
"""Bytes that the drive writes for one of the fast log, metadata included."""

METADATA = 1 << 20
"""What a file system writes for itself, however little there is of the log."""

MAPS = 32 << 10
"""What it reads for itself, to find free blocks: ext4 reads 16 KiB for a log of 14 MiB that is written without
DONTCACHE. The slow log's last page read back after each drop is 52 KiB in five seconds."""


def drive() -> tuple[int, int]:
    """Bytes that it has read and written so far."""
    fields = drive_stat()
    return fields[2] * 512, fields[6] * 512


def grow(log: int, pause: float, seconds: float) -> int:
    """Appends to the log for as long, and returns by how many bytes it has grown."""
    begin = size = os.fstat(log).st_size
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        write_dontcache(log, size, bytes(RECORD))
        size += RECORD
        time.sleep(pause)
    return size - begin


def append_log(kind: str) -> Verdict:
    with file_system(kind) as root, opened(root / "log") as log:
        # What the file system reads once, to find free blocks, is not the log's.
        grow(log, FAST, 1)
        os.sync()
        _, before = drive()
        size = grow(log, FAST, FAST_SECONDS)
        os.sync()
        read, written = drive()
        records = grow(log, SLOW, SLOW_SECONDS) // RECORD
        gone = waited(lambda: not cached_pages(log), GONE)
        os.sync()
        read, written = drive()[0] - read, written - before
    tried(size > FAST_SECONDS * RECORD * 100, f"a fast log that grows: {size} bytes")
    tried(records > SLOW_SECONDS * 5, f"a slow log that grows: {records} records")
    told = "still cached" if gone is None else f"gone after {gone:.1f} s"
    kept = read <= MAPS and written <= MOST * size + METADATA and gone is not None
    said = f"{written >> 10} KiB written for {size >> 10} KiB of a fast log; {read >> 10} KiB read beside a slow one, {told}"
    return Verdict(kept, said)


main(lambda: on_each(append_log), breaks_c=True)
