#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""When the flusher begins a round for DONTCACHE writers, and how much it writes at a time."""

import functools
import os
import re
import time
from collections.abc import Callable

from lib import ktap
from lib.dontcache import (
    MIB,
    PAGE,
    cgroup,
    core,
    counter,
    file_system,
    in_cgroup,
    opened,
    trace,
    until,
    write_dontcache,
)

DELAY = 0.2
"""Seconds that a page may wait."""
ATTEMPTS = 5
REQUEST = 512 << 10
"""What the test drive takes at once."""
ISSUED = re.compile(r"block_rq_issue: \S+ W\w* \d+ \([^)]*\) \d+ \+ (\d+) ")
PIECE = 64 << 10
"""What a folio has that the flusher writes as a whole."""
NR_PAGES = re.compile(r"writeback_start: .* nr_pages=(\d+) .*reason=dontcache")


def needs_rust() -> None:
    if core() == "c":
        raise ktap.Skip("the C core kicks at each write")


def round_begins(write: Callable[[int], None], size: int) -> bool:
    """Whether a round begins while so many bytes are written, which takes less than the delay."""
    for _ in range(ATTEMPTS):
        # A wb knows its background limit from its first round on.
        write(PAGE)
        until(lambda: counter() == (0, 0), 30, f"the counter is {counter()}")
        with trace("writeback/writeback_start") as lines:
            begin = time.monotonic()
            write(size)
            took = time.monotonic() - begin
            begun = any(NR_PAGES.search(line) for line in lines())
        until(lambda: counter() == (0, 0), 30, f"the counter is {counter()}")
        if took < DELAY:
            return begun
    raise AssertionError(f"{size} bytes were never written within {DELAY} s")


def small_group_kicks_early() -> None:
    """A writer kicks at a quarter of its own group's background limit, and not of the system's."""
    needs_rust()
    size = 3 * MIB
    with file_system("ext4") as root, cgroup("small") as group:
        (group / "memory.max").write_text(str(48 * MIB))

        def write(name: str, size: int) -> None:
            with opened(root / name) as fd:
                for offset in range(0, size, MIB):
                    write_dontcache(fd, offset, bytes(min(size, MIB)))

        assert round_begins(lambda size: in_cgroup(group, lambda: write("inside", size)), size), "no round in the group"
        assert not round_begins(functools.partial(write, "outside"), size), "a round outside of the group"


def a_writer_makes_large_requests() -> None:
    """No round is followed by one for the few pages that came while it ran."""
    needs_rust()
    size = 64 * MIB
    with file_system("xfs") as root, opened(root / "file") as fd:
        os.ftruncate(fd, size)
        os.fsync(fd)
        with trace("block/block_rq_issue") as lines:
            for offset in range(0, size, PIECE):
                write_dontcache(fd, offset, bytes(PIECE))
            os.fsync(fd)
            sizes = [int(found[1]) * 512 for line in lines() if (found := ISSUED.search(line))]
        assert sum(sizes) >= size, f"{sum(sizes)} of {size} bytes were seen to be written"
        mean = sum(sizes) / len(sizes)
        assert mean >= 0.9 * REQUEST, f"{len(sizes)} requests of {mean:.0f} bytes on average: {sizes}"


CASES = (
    small_group_kicks_early,
    a_writer_makes_large_requests,
)

if __name__ == "__main__":
    ktap.main("dontcache_pace", [(case.__name__, case) for case in CASES])
