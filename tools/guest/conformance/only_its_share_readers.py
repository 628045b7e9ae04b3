# SPDX-License-Identifier: GPL-2.0
"""Four random readers beside a writer that fills the drive: as many reads beside DONTCACHE as beside buffered, as fast

The median of the pairs counts. The writer has dirtied as much as it may before the readers begin.
"""

import os
import random
import statistics
import time
from pathlib import Path

from lib.devices import slow_drive
from lib.dontcache import KIB, MIB, PAGE, RWF_DONTCACHE, beside, file_system, for_a_while, in_child, knobs
from lib.dontcache import opened, write_pieces
from lib.row import Verdict, main, tried

SPEED = 256 * MIB
"""So that a request takes 1 ms."""
PIECE, WRITTEN, READ = 64 * KIB, 32 * MIB, 128 * MIB
READERS, PAIRS = 4, 9
BEGIN, SECONDS = 1, 4
LEAST, MOST = 0.95, 1.05


def write(path: Path, flags: int) -> None:
    """Writes a file again and again until the readers have ended."""
    data = os.urandom(PIECE)
    with opened(path) as fd:
        for number, _ in enumerate(for_a_while(BEGIN + SECONDS)):
            os.pwritev(fd, [data], number * PIECE % WRITTEN, flags)


def read(path: Path, note: Path) -> None:
    """Reads a page here and there, and notes what each read took, in microseconds."""
    took = []
    with opened(path, os.O_RDONLY) as fd:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        for _ in for_a_while(SECONDS):
            begin = time.monotonic()
            os.pread(fd, PAGE, random.randrange(READ // PAGE) * PAGE)
            took.append(str(round((time.monotonic() - begin) * 10**6)))
    note.write_text(" ".join(took))


def reads(root: Path, flags: int) -> tuple[int, float]:
    """How many reads there were beside such a writer, and the 99th percentile of what they took."""
    notes = [Path(f"/tmp/{reader}.took") for reader in range(READERS)]
    Path("/proc/sys/vm/drop_caches").write_text("3")
    with beside(lambda: write(root / "written", flags)):
        time.sleep(BEGIN)
        in_child(*(lambda note=note: read(root / "read", note) for note in notes))
    took = [int(word) for note in notes for word in note.read_text().split()]
    tried(len(took) > 500, "readers that get on")
    return len(took), statistics.quantiles(took, n=100)[-1]


def readers() -> Verdict:
    many, slow = [], []
    with slow_drive(SPEED) as disk, file_system("xfs", disk.device) as root, knobs(
        dirty_bytes=8 * MIB, dirty_background_bytes=4 * MIB
    ):
        with opened(root / "read") as fd:
            write_pieces(fd, READ, MIB, RWF_DONTCACHE)
        for _ in range(PAIRS):
            (buffered, buffered_p99), (dontcache, dontcache_p99) = (reads(root, flags) for flags in (0, RWF_DONTCACHE))
            many.append(dontcache / buffered)
            slow.append(dontcache_p99 / buffered_p99)
    share, wait = statistics.median(many), statistics.median(slow)
    figures = f"{share:.2f} times the reads ({min(many):.2f} to {max(many):.2f}), p99 {wait:.2f} ({min(slow):.2f} to {max(slow):.2f})"
    return Verdict(share >= LEAST and wait <= MOST, figures)


main(readers, whole=True)
