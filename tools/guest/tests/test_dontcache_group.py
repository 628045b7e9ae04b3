#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A writer for each CPU on a fast device, in a memory cgroup that has little more than what may wait to be dropped."""

import mmap
import os
import random
from functools import partial
from pathlib import Path

from lib import ktap
from lib.devices import TIMER
from lib.dontcache import MIB, PAGE, cached_pages, cgroup, core, events, file_system, forget, in_cgroup, in_child, opened, until
from lib.dontcache import write_dontcache, write_pieces
from lib.walk import SECTOR, NullBlock

LIMIT = 24 * MIB * (PAGE >> 12)
"""With half of it buffered writers of pages of 4 KiB have been killed, too."""
CPUS = len(os.sched_getaffinity(0))
SIZE, SPENT = 192 * MIB, 96 * MIB // CPUS
"""Of the file, and of what each of them writes."""


def write(path: Path, seed: int) -> None:
    """Writes pages of the file that are no neighbours of each other."""
    data = mmap.mmap(-1, PAGE)
    chosen = random.Random(seed)
    with opened(path) as fd:
        for _ in range(SPENT // PAGE):
            write_dontcache(fd, chosen.randrange(SIZE // PAGE // 2) * 2 * PAGE, data)


def its_memory_comes_back() -> None:
    """Nobody is killed, and nothing of what was written stays."""
    if core() == "c":
        raise ktap.Skip("the C core leaves what is overwritten on ext4")
    disk = NullBlock(256, SECTOR, irqmode=TIMER, completion_nsec=20_000, poll_queues=0)
    with disk, file_system("ext4", disk.device) as root, cgroup("little") as group, opened(root / "file") as fd:
        # Of blocks that were never written a task ends the writeback, and drops: nothing would wait.
        write_pieces(fd, SIZE, MIB, flags=0)
        os.fsync(fd)
        forget(fd)
        (group / "memory.max").write_text(str(LIMIT))
        in_child(*(partial(in_cgroup, group, partial(write, root / "file", seed)) for seed in range(CPUS)))
        assert events(group)["oom_kill"] == 0
        os.fsync(fd)
        until(lambda: cached_pages(fd) == 0, 5, "pages stay")


ktap.main("dontcache_group", [("its_memory_comes_back", its_memory_comes_back)])
