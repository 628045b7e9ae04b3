#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""fsyncs in a cgroup beside a writer in a cgroup with io.max: no slower with a DONTCACHE writer than with a buffered one"""

import os
import statistics
import time
from functools import partial
from pathlib import Path

from lib.dontcache import MIB, NVME, PAGE, RWF_DONTCACHE, cachestat, cgroup, file_system, forked, in_cgroup, opened
from lib.row import KIB, PATIENCE, Verdict, main, tried, waited

LIMIT = 4 * MIB
"""Bytes a second that the writer's cgroup may write."""
SIZE, PIECE = 16 * MIB, 64 * KIB
SYNCS = 100
MOST, GRACE = 1.5, 0.02
"""Times the median beside a buffered writer, and seconds: medians of a few milliseconds differ by as much in an
emulated guest. An fsync that waits for the other cgroup waits for seconds."""


def write(path: Path, flags: int) -> None:
    """Writes the file, which takes longer than the fsyncs."""
    with opened(path) as fd:
        for offset in range(0, SIZE, PIECE):
            os.pwritev(fd, [bytes(PIECE)], offset, flags)
        os.fsync(fd)


def write_limited(group: Path, path: Path, flags: int) -> None:
    in_cgroup(group, partial(write, path, flags))


def sync_often(path: Path, note: Path) -> None:
    """Notes the median of the seconds that an fsync of a page takes."""
    took = []
    with opened(path) as fd:
        for nr in range(SYNCS):
            os.pwrite(fd, bytes(PAGE), nr * PAGE)
            begin = time.monotonic()
            os.fsync(fd)
            took.append(time.monotonic() - begin)
    note.write_text(str(statistics.median(took)))


def io_max() -> Verdict:
    figures, kept, note = [], True, Path("/tmp/seconds")
    number = os.stat(NVME).st_rdev
    limit = f"{os.major(number)}:{os.minor(number)} wbps={LIMIT}"
    for kind in ("ext4", "xfs"):
        took = {}
        with file_system(kind) as root:
            for flags in (0, RWF_DONTCACHE):
                with cgroup("limited") as limited, cgroup("other") as other:
                    (limited / "io.max").write_text(limit)
                    writer = forked(partial(write_limited, limited, root / "file", flags))
                    with opened(root / "file") as fd:
                        started = waited(lambda: cachestat(fd).writeback > 0, PATIENCE)
                    tried(started is not None, "writes of the limited cgroup")
                    in_cgroup(other, partial(sync_often, root / "log", note))
                    ended, _ = os.waitpid(writer, os.WNOHANG)
                    tried(ended == 0, "fsyncs while the writer is at its limit")
                    assert os.waitpid(writer, 0)[1] == 0, "the writer failed"
                took[flags] = float(note.read_text())
                (root / "file").unlink()
        kept &= took[RWF_DONTCACHE] <= MOST * took[0] + GRACE
        figures.append(f"{kind} {took[RWF_DONTCACHE] * 1000:.1f} ms, beside a buffered writer {took[0] * 1000:.1f} ms")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(io_max, stacks=True)
