#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""64 writers in memory cgroups at their limits, while a CPU comes and goes, and memory is compacted."""

import contextlib
import itertools
import os
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lib import ktap
from lib.devices import CPU1
from lib.dontcache import ENOUGH, MIB, MOUNT, RWF_DONTCACHE, cgroup, core, counter, events, file_system, held, meanwhile, memory
from lib.dontcache import migrated, opened, until, write_dontcache
from lib.row import NOTHING, quiet_counter, synced_counter
from lib.walk import NOISE

WRITERS = 64
GROUPS = 4
LIMIT = 48 * MIB
"""The memory of a group: less than what its writers write to, though half of it is their own."""
SIZE = 8 * MIB
"""What each writer has for itself."""
LONGEST = 256 * 1024

SECONDS = 60.0
"""How long the load lasts."""
ROUND = 5.0
"""Seconds of load between two quiet moments."""
WRITES = 10
"""How often each writer has to have written in a round, however busy the host is."""
PATIENCE = 180.0
"""Seconds that a round may take to begin."""
TURNS = 3
"""The least of them, each a round on both file systems: there has to be a first and a last third."""

SLACK_KIB = {"available": 8 << 10, "slab": 6 << 10}
"""What differs from turn to turn without end or beginning."""


def write(writer: int, group: Path) -> None:
    """Writes anywhere in a file, and finds there what it has written. Every other four use DONTCACHE."""
    (group / "cgroup.procs").write_text(str(os.getpid()))
    flags = RWF_DONTCACHE if writer // GROUPS % 2 else 0
    noise, path = random.Random(writer), MOUNT / str(writer)
    with opened(path) as fd:
        for number in itertools.count():
            if number >= WRITES and ENOUGH.exists():
                break
            length = noise.randint(1, LONGEST)
            start, offset = noise.randrange(LONGEST), noise.randrange(SIZE - LONGEST)
            data = NOISE[start : start + length]
            assert os.pwritev(fd, [data], offset, flags) == length
            chance = noise.random()
            if chance < 0.1:
                os.fsync(fd)
            elif chance < 0.15:
                os.ftruncate(fd, noise.randrange(SIZE))
            elif chance < 0.2:
                got = bytearray(length)
                assert os.preadv(fd, [got], offset, flags) == length, f"a short read in {path}"
                assert got == data, f"{path} holds something else"


def switch_cpu() -> None:
    """One CPU goes away and comes back."""
    while not ENOUGH.exists():
        for state in ("0", "1"):
            CPU1.write_text(state)
            time.sleep(0.2)


def compact() -> None:
    """All memory is compacted again and again."""
    while not ENOUGH.exists():
        Path("/proc/sys/vm/compact_memory").write_text("1")
        time.sleep(1)


def one_round(kind: str, groups: list[Path]) -> None:
    """Load that is one, and quiet moments in which the counter has the pages that are there, and none in the end."""
    before = {group: events(group)["max"] for group in groups}

    def at_limits() -> bool:
        return all(events(group)["max"] > before[group] for group in groups)

    with file_system(kind):
        tasks: list[Callable[[], None]] = [partial(write, writer, groups[writer % GROUPS]) for writer in range(WRITERS)]
        with meanwhile([*tasks, switch_cpu, compact]):
            end = time.monotonic() + ROUND
            until(lambda: counter()[0] > 0, PATIENCE, "the counter moves")
            until(at_limits, PATIENCE, "all groups are at their limits")
            time.sleep(max(end - time.monotonic(), 1))
        # Pages are left to be counted, where they can be.
        with held():
            with opened(MOUNT / "quiet") as fd:
                write_dontcache(fd, 0, NOISE[:MIB])
            quiet = quiet_counter()
        synced = synced_counter()
    print(f"# {kind}: the counter is {quiet}, synced {synced}", flush=True)
    # The C core loses dropbehind in migration.
    if core() == "rust":
        assert quiet[0] == quiet[1] > 0 and synced == NOTHING, f"the counter is {quiet}, synced {synced}"


def load() -> None:
    """Rounds of load, all of which end, in which all happened that should, and that lose no memory."""
    before, left = migrated(), list[dict[str, int]]()
    end = time.monotonic() + SECONDS
    with contextlib.ExitStack() as stack:
        groups = [stack.enter_context(cgroup(f"load-{number}")) for number in range(GROUPS)]
        for group in groups:
            (group / "memory.max").write_text(str(LIMIT))
        while time.monotonic() < end or len(left) < TURNS:
            one_round("xfs", groups)
            one_round("ext4", groups)
            left.append(memory())
            print(f"# {left[-1]}", flush=True)
        for group in groups:
            assert not events(group)["oom_kill"], f"writers of {group.name} were killed"
    assert migrated() > before, "nothing was moved in memory"
    third = len(left) // 3
    for name, slack in SLACK_KIB.items():
        first, last = (statistics.median(one[name] for one in part) for part in (left[:third], left[-third:]))
        lost = first - last if name == "available" else last - first
        assert lost < slack, f"{name} went from {first} to {last} KiB in {len(left)} turns"


ktap.main("dontcache_load", [("load", load)])
