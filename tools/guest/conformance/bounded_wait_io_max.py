# SPDX-License-Identifier: GPL-2.0
"""fsyncs in a cgroup beside a writer in a cgroup with io.max: no slower with a DONTCACHE writer than with a buffered one"""

import os
import statistics
import time
from functools import partial
from pathlib import Path

from lib.dontcache import KIB, MIB, PAGE, RWF_DONTCACHE, cachestat, cgroup, file_system, forked, in_cgroup, numbers_of, opened
from lib.dontcache import waited, write_pieces
from lib.row import PATIENCE, Verdict, main, on_each, tried

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
        write_pieces(fd, SIZE, PIECE, flags)
        os.fsync(fd)


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


def beside(root: Path, flags: int) -> float:
    """The median of the seconds of an fsync beside a writer with these flags."""
    note = Path("/tmp/seconds")
    with cgroup("limited") as limited, cgroup("other") as other:
        (limited / "io.max").write_text(f"{numbers_of()} wbps={LIMIT}")
        writer = forked(lambda: in_cgroup(limited, partial(write, root / "file", flags)))
        with opened(root / "file") as fd:
            tried(waited(lambda: cachestat(fd).writeback > 0, PATIENCE) is not None, "writes of the limited cgroup")
        in_cgroup(other, partial(sync_often, root / "log", note))
        ended, _ = os.waitpid(writer, os.WNOHANG)
        tried(ended == 0, "fsyncs while the writer is at its limit")
        assert os.waitpid(writer, 0)[1] == 0, "the writer failed"
    (root / "file").unlink()
    return float(note.read_text())


def io_max(kind: str) -> Verdict:
    with file_system(kind) as root:
        buffered, dontcache = (beside(root, flags) for flags in (0, RWF_DONTCACHE))
    kept = dontcache <= MOST * buffered + GRACE
    return Verdict(kept, f"{dontcache * 1000:.1f} ms, beside a buffered writer {buffered * 1000:.1f} ms")


main(lambda: on_each(io_max), stacks=True)
