#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""64 MiB in a cgroup with a memory.high of 16 MiB, until durable: at most 1.1 times as long as buffered

The cgroup's limit stops a buffered writer for up to seconds in some of the runs: the median of the runs counts.
"""

import os
import statistics
import time
from functools import partial
from pathlib import Path

from lib.dontcache import MIB, RWF_DONTCACHE, cgroup, events, file_system, in_cgroup, opened
from lib.row import KIB, Verdict, main, tried

HIGH, LENGTH, PIECE = 16 * MIB, 64 * MIB, 64 * KIB
PAIRS = 15
MOST = 1.1


def write(path: Path, flags: int, note: Path) -> None:
    """Writes a new file, and notes the seconds until it is durable."""
    begin = time.monotonic()
    with opened(path) as fd:
        for offset in range(0, LENGTH, PIECE):
            os.pwritev(fd, [bytes(PIECE)], offset, flags)
        os.fsync(fd)
    note.write_text(str(time.monotonic() - begin))


def memory_high() -> Verdict:
    figures, kept, note = [], True, Path("/tmp/seconds")
    for kind in ("ext4", "xfs"):
        took: dict[int, list[float]] = {0: [], RWF_DONTCACHE: []}
        waits = dict.fromkeys(took, 0)
        with file_system(kind) as root:
            for _ in range(PAIRS):
                for flags in took:
                    with cgroup("high") as group:
                        (group / "memory.high").write_text(str(HIGH))
                        in_cgroup(group, partial(write, root / "file", flags, note))
                        waits[flags] += events(group)["high"]
                    took[flags].append(float(note.read_text()))
                    (root / "file").unlink()
        tried(waits[0], "a buffered writer at its limit")
        buffered, dontcache = statistics.median(took[0]), statistics.median(took[RWF_DONTCACHE])
        ratio = dontcache / buffered
        kept &= ratio <= MOST
        figures.append(
            f"{kind} {ratio:.2f} times, {buffered:.2f} s buffered; "
            f"at the limit {waits[RWF_DONTCACHE]} times, buffered {waits[0]}"
        )
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(memory_high, breaks_c=True, whole=True)
