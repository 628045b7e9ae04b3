# SPDX-License-Identifier: GPL-2.0
"""syncfs() of a small file beside a kick for 512 MiB on another partition of a slow drive with the same flusher.

It waits for one portion of what is written for the kick. Counted in bytes: the drive is as slow as the
host makes it.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from lib.devices import INNER
from lib.dontcache import KIB, MIB, TRACEFS, cachestat, file_system, flusher_held, never_many, never_periodic, numbers_of, opened
from lib.dontcache import syncfs, trace, write_dontcache
from lib.row import PATIENCE, SHORT, Verdict, main, tried, waited
from lib.slow import REQUEST, partition, slow_drive
from lib.walk import SECTOR, sectors

PORTION = 4 * MIB
MOST = PORTION + 4 * REQUEST
"""What is written for the kick meanwhile: a portion, and requests that are under way when it begins or ends."""
KICKED = 512 * MIB
PART, OTHER = 640 * MIB, 256 * MIB
SMALL = 64 * KIB
TIMES = 2 if SHORT else 4
MARK = "the sync begins"

ISSUED = re.compile(r" block_rq_issue: (\S+) W\w* \d+ \([^)]*\) (\d+) \+ (\d+) ")
"""A write on this drive, from this sector on, of so many."""


@contextlib.contextmanager
def other_file(device: str) -> Iterator[int]:
    """A file of a file system of its own, which has its place on the drive."""
    with file_system("ext4", device, root=INNER) as root, opened(root / "file") as fd:
        os.pwrite(fd, bytes(SMALL), 0)
        os.fsync(fd)
        yield fd


def kicked(path: Path) -> int:
    """Has the file kicked for; its pages are dirty when that begins."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    data = os.urandom(MIB)
    with flusher_held():
        for offset in range(0, KICKED, MIB):
            write_dontcache(fd, offset, data)
    return fd


def written_before(lines: Iterable[str], drive: str, first: int, last: int) -> int | None:
    """Bytes that the drive was given before any of these sectors, after the mark; None if it never got those."""
    total, begun = 0, False
    for line in lines:
        begun |= MARK in line
        if begun and (issued := ISSUED.search(line)) and issued[1] == drive:
            start, count = int(issued[2]), int(issued[3])
            if first <= start <= last:
                return total
            total += count * SECTOR
    return None


def portion() -> Verdict:
    waits: list[float] = []
    written: list[int | None] = []
    with contextlib.ExitStack() as stack:
        disk = stack.enter_context(slow_drive())
        drive = numbers_of(disk.device, ",")
        root = stack.enter_context(file_system("xfs", stack.enter_context(partition(disk.device, 1, 0, PART))))
        small = stack.enter_context(other_file(stack.enter_context(partition(disk.device, 2, PART, OTHER))))
        first, last = (PART // SECTOR + sector for sector in sectors(small, 0))
        stack.enter_context(never_periodic())
        stack.enter_context(never_many())
        much = kicked(root / "much")
        stack.callback(os.close, much)
        # Nobody needs it any more then.
        stack.callback(os.ftruncate, much, 0)
        started = waited(lambda: cachestat(much).writeback > 0, PATIENCE)
        for _ in range(TIMES):
            time.sleep(0.2)  # amid the round
            left = cachestat(much).dirty
            tried(started is not None and left > 2 * MOST // MIB, f"a kick that has much to do: {left} pages are left")
            with trace("block/block_rq_issue") as lines:
                os.pwrite(small, os.urandom(SMALL), 0)
                (TRACEFS / "trace_marker").write_text(MARK)
                begin = time.monotonic()
                syncfs(small)
                waits.append(time.monotonic() - begin)
                written.append(written_before(lines(), drive, first, last))
            if written[-1] is None or written[-1] > MOST:
                break
    most = max((bytes_ for bytes_ in written if bytes_ is not None), default=0)
    kept = None not in written and most <= MOST
    tried(not kept or most, "a sync that has to wait")
    figures = f"{most / MIB:.1f} MiB written for the kick before the sync's first byte, the longest of {len(waits)} syncs"
    if None in written:
        figures += ", one of which has written nothing"
    return Verdict(kept, f"{figures} took {max(waits):.1f} s")


main(portion, breaks_c=True)
