#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""When the flusher writes for DONTCACHE writers, and how much at a time; what waits is neither forgotten nor written twice."""

import fcntl
import itertools
import os
import re
import struct
import time
from pathlib import Path

from lib import ktap
from lib.devices import CPU1, TIMER, null_block, null_timer
from lib.dontcache import MIB, PAGE, cached_pages, core, counter, file_system, flusher_held, forget, held, in_child, left_of
from lib.dontcache import never_periodic, numbers_of, opened, sanitizer, trace, until, write_dontcache, write_pieces

REQUEST = 512 << 10
"""What the test drive takes at once."""
ISSUED = re.compile(r"block_rq_issue: \S+ W\w* \d+ \([^)]*\) \d+ \+ (\d+) ")
PIECE = 64 << 10
"""What a folio has that the flusher writes as a whole."""

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
UNWRITABLE = 5
"""Seconds for which pages cannot be written."""
BEGUN = re.compile(r" (\d+\.\d+): writeback_start: .*reason=dontcache")

GOINGS = 20
"""How often CPU 1 goes offline while a page waits to be dropped."""


def needs_rust() -> None:
    if core() == "c":
        raise ktap.Skip("the C core kicks at each write, has no delay, and forgets what a kick has left")


def nothing_counted() -> None:
    until(lambda: counter() == (0, 0), 30, f"the counter is {counter()}")


def a_writer_makes_large_requests() -> None:
    """No round is followed by one for the few pages that came while it ran."""
    needs_rust()
    if sanitizer() == "rt":
        raise ktap.Skip("requests are smaller without large folios")
    size = 64 * MIB
    with file_system("xfs") as root, opened(root / "file") as fd:
        os.ftruncate(fd, size)
        os.fsync(fd)
        with trace("block/block_rq_issue") as lines:
            write_pieces(fd, size, PIECE)
            os.fsync(fd)
            sizes = [int(found[1]) * 512 for line in lines() if (found := ISSUED.search(line))]
        assert sum(sizes) >= size, f"{sum(sizes)} of {size} bytes were seen to be written"
        mean = sum(sizes) / len(sizes)
        assert mean >= 0.9 * REQUEST, f"{len(sizes)} requests of {mean:.0f} bytes on average: {sizes}"


def writers_wake_a_flusher_once() -> None:
    """Writers who find the flusher asked already do not wake it."""
    size, piece = 16 * MIB, 16 << 10
    with file_system("xfs") as root, opened(root / "traced") as fd:
        with trace("writeback/writeback_start", "workqueue/workqueue_queue_work") as lines:
            with flusher_held():
                write_pieces(fd, size, piece)
            nothing_counted()
            seen = lines()
    device = f"bdi {numbers_of()}:"
    assert any(device in line and BEGUN.search(line) for line in seen), "no round for DONTCACHE"
    wakeups = sum("function=wb_workfn" in line for line in seen)
    assert 0 < wakeups < size // piece / 2, f"{wakeups} wake-ups for {size // piece} writes"


def synchronous_needs_no_kick() -> None:
    """An O_DSYNC write is on the drive when it returns; nobody is kicked for it."""
    for kind in ("xfs", "ext4"):
        with file_system(kind) as root, trace("writeback/writeback_start") as lines:
            with opened(root / "dsync", os.O_RDWR | os.O_CREAT | os.O_DSYNC) as fd:
                write_dontcache(fd, 0, bytes(MIB))
                assert counter() == (0, 0), f"the counter is {counter()}"
            seen = [line for line in lines() if BEGUN.search(line)]
        assert not seen, f"kicked by a synchronous write: {seen}"


def the_unwritable_is_tried_after_each_delay() -> None:
    """Where a file system has been shut down the flusher tries after each delay: neither never nor all the time."""
    needs_rust()
    with file_system("ext4") as root:
        with held(), opened(root / "file") as fd:
            write_dontcache(fd, 0, bytes(MIB))
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("=I", NO_LOG_FLUSH))
        left = counter()
        assert left[0] == left[1] > 0, f"the counter is {left}"
        os.sync()
        with trace("writeback/writeback_start") as lines:
            time.sleep(UNWRITABLE)
            times = [float(found[1]) for line in lines() if (found := BEGUN.search(line))]
            # A round tries twice: C begins at the front of a file when it comes again.
            rounds = sum(time - before > 0.1 for before, time in itertools.pairwise([0.0, *times]))
        # One each 200 ms; a flusher that looks once a second would have 5.
        assert 3 * UNWRITABLE <= rounds <= 5 * UNWRITABLE + 1, f"{rounds} rounds in {UNWRITABLE} s"
        assert counter() == left, f"the counter is {counter()}"
    nothing_counted()


def pages_of_a_cpu_that_leaves_are_written() -> None:
    """What only that CPU has counted is written for the next page that another CPU writes."""

    def on_cpu1(path: Path) -> None:
        os.sched_setaffinity(0, {1})
        with opened(path) as fd:
            write_dontcache(fd, 0, bytes(PAGE))

    with never_periodic(), null_block(TIMER) as disk, file_system("xfs", disk.device) as root:
        with opened(root / "file") as fd, opened(root / "other") as other:
            with held():
                in_child(lambda: on_cpu1(root / "file"))
                CPU1.write_text("0")
            try:
                assert left_of(fd) == 1, "nobody was to write it"
                write_dontcache(other, 0, bytes(PAGE))
                until(lambda: left_of(fd) == 0, 10, "the page stays")
            finally:
                CPU1.write_text("1")


def drop_on_a_cpu_that_leaves() -> None:
    """Pages that the interrupts of a CPU have put into its ring are dropped, even if the CPU goes offline meanwhile."""
    waited = 0
    with null_timer() as node, opened(node, os.O_RDWR) as fd:
        for turn in range(GOINGS):
            try:
                os.sched_setaffinity(0, {1})
                forget(fd)
                # So short a bio ends in its interrupt.
                write_dontcache(fd, turn * PAGE, bytes(PAGE))
                os.fsync(fd)
                waited += cached_pages(fd, MIB) > 0
                CPU1.write_text("0")
                until(lambda: cached_pages(fd, MIB) == 0, 1, "the pages of CPU 1 are dropped")
            finally:
                CPU1.write_text("1")
    assert waited or core() == "c", "no page waited when CPU 1 went offline"


def pages_of_a_cpu_that_leaves_are_dropped() -> None:
    """They are, in a process of its own that changes its CPU."""
    in_child(drop_on_a_cpu_that_leaves)


CASES = (
    a_writer_makes_large_requests,
    writers_wake_a_flusher_once,
    synchronous_needs_no_kick,
    the_unwritable_is_tried_after_each_delay,
    pages_of_a_cpu_that_leaves_are_written,
    pages_of_a_cpu_that_leaves_are_dropped,
)

ktap.main("dontcache_pace", [(case.__name__, case) for case in CASES])
