#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Two writers on a fast device, in a memory cgroup that has little more than what may wait to be dropped."""

from __future__ import annotations

import mmap
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lib import ktap
from lib.devices import TIMER
from lib.dontcache import MIB, PAGE, cgroup, file_system, forked, in_cgroup, left_of, opened, until, write_dontcache
from lib.walk import SECTOR, NullBlock

LIMIT = 24 * MIB * (PAGE >> 12)
"""With half of it buffered writers are killed, too: they and their page tables have 8 MiB."""
SIZE, SPENT = 192 * MIB, 48 * MIB
"""Of the file, and of what each of them writes."""
LARGEST = max(PAGE, 16 << 10)
"""A folio with more bytes does not wait."""


def killed(group: Path) -> int:
    """How many of the group's tasks were, for want of memory."""
    events = dict(line.split() for line in (group / "memory.events").read_text().splitlines())
    return int(events["oom_kill"])


def write(path: Path, length: int, seed: int) -> None:
    """Writes parts of the file that are no neighbours of each other."""
    data = mmap.mmap(-1, length)
    chosen = random.Random(seed)
    with opened(path) as fd:
        for _ in range(SPENT // length):
            write_dontcache(fd, chosen.randrange(SIZE // LARGEST // 2) * 2 * LARGEST, data)


def its_memory_comes_back(length: int) -> None:
    """Nobody is killed, and nothing of what was written stays."""
    disk = NullBlock(256, SECTOR, irqmode=TIMER, completion_nsec=20_000, poll_queues=0)
    with disk, file_system("ext4", disk.device) as root, cgroup("little") as group, opened(root / "file") as fd:
        os.posix_fallocate(fd, 0, SIZE)
        os.fsync(fd)
        (group / "memory.max").write_text(str(LIMIT))

        def writers() -> None:
            children = [forked(partial(write, root / "file", length, seed)) for seed in range(2)]
            statuses = [os.waitpid(child, 0)[1] for child in children]
            assert statuses == [0, 0], f"the writers ended with {statuses}, {killed(group)} killed"

        in_cgroup(group, writers)
        assert killed(group) == 0
        os.fsync(fd)
        until(lambda: left_of(fd) == 0, 5, "pages stay")


CASES: list[tuple[str, Callable[[], None]]] = [
    ("after_pages", partial(its_memory_comes_back, PAGE)),
    ("after_the_largest_that_wait", partial(its_memory_comes_back, LARGEST)),
]

if __name__ == "__main__":
    ktap.main("dontcache_group", CASES)
