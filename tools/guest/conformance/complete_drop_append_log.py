#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A log that grows by 700 bytes each millisecond. The page that it ends in is not read back from the drive, which
would make the writer wait, is not written again and again, and goes like all others when the log rests.
"""

from __future__ import annotations

import os
import time

from dontcache import NVME, cached_pages, file_system, opened, write_dontcache
from row import SHORT, Verdict, main, tried, waited

SECONDS = 5 if SHORT else 60
RECORD = 700
PAUSE = 0.001
GONE = 3
"""Seconds within which a log that rests has left the page cache."""

MOST = 1.1
"""Bytes that the drive writes for one of the log, metadata included."""

METADATA = 1 << 20
"""What a file system writes for itself, however little there is of the log."""

MAPS = 64 << 10
"""What it reads for itself, to find free blocks: ext4 reads 16 KiB for a log of 14 MiB that is written without
DONTCACHE. The log's last page read back at each round is 1 MiB in a minute, and more than this in the short row."""


def drive() -> tuple[int, int]:
    """Bytes that it has read and written so far."""
    with open(f"/sys/class/block/{os.path.basename(NVME)}/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.read().split()]
    return fields[2] * 512, fields[6] * 512


def grow(log: int, size: int, seconds: float) -> int:
    """Appends to the log for as long, and returns its size."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        write_dontcache(log, size, bytes(RECORD))
        size += RECORD
        time.sleep(PAUSE)
    return size


def append_log() -> Verdict:
    figures, kept = [], True
    for kind in ("xfs", "ext4"):
        with file_system(kind) as root, opened(root / "log") as log:
            # What the file system reads once, to find free blocks, is not the log's.
            begin = grow(log, 0, 1)
            os.sync()
            read, written = drive()
            size = grow(log, begin, SECONDS) - begin
            gone = waited(lambda: not cached_pages(log), GONE)
            os.sync()
            read, written = drive()[0] - read, drive()[1] - written
        tried(size > SECONDS * RECORD * 100, "a log that grows")
        kept &= read <= MAPS and written <= MOST * size + METADATA and gone is not None
        told = "still cached" if gone is None else f"gone after {gone:.1f} s"
        figures.append(f"{kind} {size >> 10} KiB of log: {read >> 10} KiB read, {written >> 10} written, {told}")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(append_log)
