# SPDX-License-Identifier: GPL-2.0
"""A DONTCACHE page beside 10 and 20,000 dirty ordinary files, which must not be written and must keep their age."""

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

from lib.dontcache import PAGE, cachestat, file_system, never_many, never_periodic, opened, trace, waited, write_dontcache
from lib.row import BOUND, SHORT, Verdict, main, on_each, told_wait, tried

FILES = (10, 2_000 if SHORT else 20_000)
WRITES = 10
PAUSE = 3
"""Seconds between the last file and the first kick: who has a date that is younger has lost its own."""

WRITTEN = re.compile(r" writeback_single_inode: bdi \S+ ino=(\d+) .* age=(\d+) .* wrote=(\d+) ")


def written(lines: Iterable[str]) -> list[tuple[int, int, int]]:
    """Each time an inode was written: its number, its age in seconds, and how many pages."""
    found = (WRITTEN.search(line) for line in lines)
    return [(int(one[1]), int(one[2]), int(one[3])) for one in found if one]


def dirtied(root: Path, count: int) -> set[int]:
    """Makes so many files, each with a page that is dirty and has its place on the drive; their inodes."""
    paths = [root / str(number) for number in range(count)]
    for path in paths:
        path.write_bytes(bytes(PAGE))
    os.sync()
    inodes = set()
    for path in paths:
        with opened(path, os.O_RDWR) as fd:
            os.pwrite(fd, bytes(PAGE), 0)
            inodes.add(os.fstat(fd).st_ino)
    return inodes


def cost(count: int) -> Verdict:
    with file_system("xfs") as root, opened(root / "page") as fd, never_periodic(), never_many():
        inodes = dirtied(root, count)
        time.sleep(PAUSE)
        longest: float | None = 0.0
        with trace("writeback/writeback_single_inode") as lines:
            for number in range(WRITES):
                write_dontcache(fd, number * PAGE, bytes(PAGE))
                took = waited(lambda: cachestat(fd).dirty == 0, BOUND)
                longest = None if took is None or longest is None else max(longest, took)
            own = os.fstat(fd).st_ino
            foreign = sum(pages for inode, _, pages in written(lines()) if inode != own)
        with trace("writeback/writeback_single_inode") as lines:
            os.sync()
            ages = {inode: age for inode, age, pages in written(lines()) if inode in inodes and pages}
    young = sum(age < PAUSE for age in ages.values())
    kept = longest is not None and not foreign and not young
    tried(not kept or ages.keys() == inodes, f"files that stay dirty: {len(ages)} of {count}")
    told = f"the slowest {told_wait(longest)}, {foreign} foreign pages, {young} dates lost"
    return Verdict(kept, f"files: {WRITES} pages, {told}")


main(lambda: on_each(cost, FILES), breaks_c=True)
