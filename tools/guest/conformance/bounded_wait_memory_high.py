# SPDX-License-Identifier: GPL-2.0
"""64 MiB in a cgroup with a memory.high of 16 MiB, until durable: at most 1.1 times as long as buffered

The cgroup's limit stops a buffered writer for up to seconds in some of the runs: the median of the runs counts.
"""

import os
import statistics
import time
from functools import partial
from pathlib import Path

from lib.dontcache import KIB, MIB, RWF_DONTCACHE, cgroup, events, file_system, in_cgroup, opened, write_pieces
from lib.row import Verdict, main, on_each, tried

HIGH, LENGTH, PIECE = 16 * MIB, 64 * MIB, 64 * KIB
PAIRS = 15
MOST = 1.1


def write(path: Path, flags: int, note: Path) -> None:
    """Writes a new file, and notes the seconds until it is durable."""
    begin = time.monotonic()
    with opened(path) as fd:
        write_pieces(fd, LENGTH, PIECE, flags)
        os.fsync(fd)
    note.write_text(str(time.monotonic() - begin))


def memory_high(kind: str) -> Verdict:
    note, waits = Path("/tmp/seconds"), [0, 0]
    took: tuple[list[float], list[float]] = [], []
    with file_system(kind) as root:
        for _ in range(PAIRS):
            for nr, flags in enumerate((0, RWF_DONTCACHE)):
                with cgroup("high") as group:
                    (group / "memory.high").write_text(str(HIGH))
                    in_cgroup(group, partial(write, root / "file", flags, note))
                    waits[nr] += events(group)["high"]
                took[nr].append(float(note.read_text()))
                (root / "file").unlink()
    tried(waits[0], "a buffered writer at its limit")
    buffered, dontcache = map(statistics.median, took)
    figures = f"{dontcache / buffered:.2f} times, {buffered:.2f} s buffered; at the limit {waits[1]} times, buffered {waits[0]}"
    return Verdict(dontcache / buffered <= MOST, figures)


main(lambda: on_each(memory_high), breaks_c=True, whole=True)
