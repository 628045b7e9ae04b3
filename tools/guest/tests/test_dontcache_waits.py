#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Pages that wait for others to be written with: none is forgotten meanwhile, and none is written twice."""

import os
import time
from pathlib import Path

from lib import ktap
from lib.devices import CPU1, TIMER, null_block
from lib.dontcache import MIB, PAGE, core, file_system, forked, held, left_of, opened, trace, until, write_dontcache
from lib.knobs import never_periodic

DELAY = 0.2
"""Seconds that a page may wait."""


def of_a_cpu_that_goes() -> None:
    """What only that CPU has counted is written for the next page that another CPU writes."""

    def on_cpu1(path: Path) -> None:
        os.sched_setaffinity(0, {1})
        with opened(path) as fd:
            write_dontcache(fd, 0, bytes(PAGE))

    with never_periodic(), null_block(TIMER) as disk, file_system("xfs", disk.device) as root:
        with opened(root / "file") as fd, opened(root / "other") as other:
            with held():
                assert os.waitpid(forked(lambda: on_cpu1(root / "file")), 0)[1] == 0
                CPU1.write_text("0")
            try:
                assert left_of(fd) == 1, "nobody was to write it"
                write_dontcache(other, 0, bytes(PAGE))
                until(lambda: left_of(fd) == 0, 10, "the page stays")
            finally:
                CPU1.write_text("1")


def name_of(fd: int) -> str:
    """The device's numbers."""
    number = os.fstat(fd).st_rdev
    return f"{os.major(number)},{os.minor(number)}"


def of_a_file_that_is_synced() -> None:
    """The flusher may look once for what fsync() has written, and writes nothing."""
    if core() == "c":
        raise ktap.Skip("the C core has no delay")
    with never_periodic(), null_block(TIMER) as disk, opened(disk.device) as fd:
        with trace("writeback/writeback_start", "block/block_rq_issue") as lines:
            write_dontcache(fd, 0, bytes(MIB))
            os.fsync(fd)
            written = f"block_rq_issue: {name_of(fd)} W"
            before = lines()
            assert left_of(fd) == 0 and any(written in line for line in before), "the write was not seen"
            # Until after the page would have been due, several times.
            time.sleep(5 * DELAY)
            after = lines()[len(before) :]
    rounds = sum("reason=dontcache" in line for line in after)
    assert rounds <= 1 and not any(written in line for line in after), f"after the sync: {after}"


CASES = (of_a_cpu_that_goes, of_a_file_that_is_synced)

if __name__ == "__main__":
    ktap.main("dontcache_waits", [(case.__name__, case) for case in CASES])
