# SPDX-License-Identifier: GPL-2.0
"""syncfs() of a small file beside a kick for 512 MiB on another partition of a slow drive with the same flusher.

It waits for one portion of what is written for the kick. Counted in bytes: the drive is as slow as the
host makes it.
"""

import os
import re
import time
from collections.abc import Iterable

from lib.devices import INNER, REQUEST, partition, slow_drive
from lib.dontcache import KIB, MIB, TRACEFS, cachestat, file_system, flusher_held, never_many, never_periodic, numbers_of, opened
from lib.dontcache import syncfs, trace, waited, write_pieces
from lib.row import PATIENCE, SHORT, Verdict, main, tried
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
    written: list[int | None] = []
    with (
        slow_drive() as disk,
        partition(disk.device, 1, 0, PART) as one,
        partition(disk.device, 2, PART, OTHER) as two,
        file_system("xfs", one) as root,
        file_system("ext4", two, root=INNER) as inner,
        opened(root / "much") as much,
        opened(inner / "file") as small,
        never_periodic(),
        never_many(),
    ):
        os.pwrite(small, bytes(SMALL), 0)
        os.fsync(small)
        first, last = (PART // SECTOR + sector for sector in sectors(small, 0))
        # All is dirty when the kick for it begins.
        with flusher_held():
            write_pieces(much, KICKED, MIB)
        started = waited(lambda: cachestat(much).writeback > 0, PATIENCE)
        for _ in range(TIMES):
            time.sleep(0.2)  # amid the round
            left = cachestat(much).dirty
            tried(started is not None and left > 2 * MOST // MIB, f"a kick that has much to do: {left} pages are left")
            with trace("block/block_rq_issue") as lines:
                os.pwrite(small, os.urandom(SMALL), 0)
                (TRACEFS / "trace_marker").write_text(MARK)
                syncfs(small)
                written.append(written_before(lines(), numbers_of(disk.device, ","), first, last))
            if written[-1] is None or written[-1] > MOST:
                break
        os.ftruncate(much, 0)  # nobody needs it any more
    most = max((bytes_ for bytes_ in written if bytes_ is not None), default=0)
    kept = None not in written and most <= MOST
    tried(not kept or most, "a sync that has to wait")
    figures = f"{most / MIB:.1f} MiB written for the kick before the first byte of any of {len(written)} syncs"
    return Verdict(kept, figures + (", one of which has written nothing" if None in written else ""))


main(portion, breaks_c=True)
