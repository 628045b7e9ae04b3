#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RWF_DONTCACHE on a device that fails, and on CPUs that come and go."""

from __future__ import annotations

import functools
import os
import random
import time
from collections.abc import Callable

from lib import ktap
from lib.devices import BAD, CPU1, TIMER, null_block, null_timer, target
from lib.dontcache import (
    MIB,
    PAGE,
    RWF_DONTCACHE,
    cached_pages,
    core,
    counter,
    forget,
    fsync_tells,
    opened,
    sync,
    until,
    within,
    write_dontcache,
)
from lib.walk import beside, sectors

SECONDS = 60
"""How long CPU 1 comes and goes."""
REGION = 4 * MIB
"""What each writer has for itself."""
GOINGS = 20
"""How often CPU 1 goes with something to do."""
FEW = PAGE
"""A bio of so much ends in its interrupt."""
LEFT = {"rust": 0, "c": REGION // PAGE // 2}
"""How many of its pages may stay cached: C keeps a folio that is locked when its writeback ends."""


def check(fd: int, offset: int, data: bytes) -> None:
    """The device holds the data."""
    forget(fd, len(data), offset)
    got = bytearray(len(data))
    assert os.preadv(fd, [got], offset, RWF_DONTCACHE) == len(data), f"a short read at {offset}"
    assert got == data, f"the device holds something else at {offset}"


def error_told_once(kind: str) -> None:
    """Whoever has the file open hears of the failure once; what is written afterwards is written."""
    data = random.Random(7).randbytes(MIB)
    with null_block(TIMER) as disk, target(kind, disk.device) as fd, opened(f"/proc/self/fd/{fd}", os.O_RDWR) as other:
        write_dontcache(fd, 0, bytes(MIB))
        assert sync(fd) == 0, "a device that is well fails"
        with disk.failing(*sectors(fd, kind, BAD)):
            write_dontcache(fd, 0, data)
            told = fsync_tells((fd, fd, other, other))
        assert told == ["EIO", "none", "EIO", "none"], f"fsync told {told}"
        until(lambda: counter(disk.device) == (0, 0), 5, f"the counter is {counter(disk.device)}")
        write_dontcache(fd, 0, data)
        assert sync(fd) == 0, "a device that is well again fails"
        check(fd, 0, data)


def write_region(node: str, start: int) -> None:
    """Writes the region again and again; in the end it is on the device."""
    noise = random.Random(start)
    regions = [noise.randbytes(REGION) for _ in range(2)]
    deadline, rounds = time.monotonic() + SECONDS, 0
    with opened(node, os.O_RDWR) as fd:
        while time.monotonic() < deadline:
            data = regions[rounds % len(regions)]
            for offset in range(0, REGION, MIB):
                write_dontcache(fd, start + offset, data[offset : offset + MIB])
                os.fsync(fd)
            rounds += 1
        assert rounds > 1, "nothing was written twice"
        check(fd, start, data)


def completes(fd: int, cpu: int) -> None:
    """What this CPU writes is dropped."""
    data = random.Random(cpu).randbytes(REGION)
    os.sched_setaffinity(0, {cpu})
    forget(fd)
    write_dontcache(fd, 0, data)
    os.fsync(fd)
    until(lambda: cached_pages(fd, REGION) <= LEFT[core()], 5, f"what CPU {cpu} wrote is dropped")
    check(fd, 0, data)


def cpus_come_and_go() -> None:
    """Two writers keep both CPUs busy with completions while one CPU goes away and comes back.

    What they leave in the cache does not count: each fsync looks into the folios of the other writer,
    and a folio that is in use by somebody else cannot be dropped.
    """
    switches = 0
    with null_timer() as node, opened(node, os.O_RDWR) as fd:
        try:
            with (
                beside(functools.partial(write_region, node, 0)),
                beside(functools.partial(write_region, node, REGION)),
            ):
                deadline = time.monotonic() + SECONDS
                while time.monotonic() < deadline:
                    CPU1.write_text(str(switches % 2))
                    switches += 1
                    time.sleep(0.1)
        finally:
            CPU1.write_text("1")
        assert switches > SECONDS, f"only {switches} switches"
        for cpu in (0, 1):
            completes(fd, cpu)
        until(lambda: counter(node) == (0, 0), 5, f"the counter is {counter(node)}")


def who_goes_leaves_nothing() -> None:
    """What the interrupts of a CPU have left to be dropped is dropped though the CPU goes meanwhile."""
    waited = 0
    with null_timer() as node, opened(node, os.O_RDWR) as fd:
        for turn in range(GOINGS):
            try:
                os.sched_setaffinity(0, {1})
                forget(fd)
                write_dontcache(fd, turn * FEW, bytes(FEW))
                os.fsync(fd)
                waited += cached_pages(fd, REGION) > 0
                CPU1.write_text("0")
                until(lambda: cached_pages(fd, REGION) == 0, 1, "what CPU 1 has left is dropped")
            finally:
                CPU1.write_text("1")
    if core() == "rust":
        assert waited, "nothing was left to be dropped when CPU 1 went"


if __name__ == "__main__":
    cases: list[tuple[str, Callable[[], None]]] = [
        (f"{kind}_error_told_once", functools.partial(error_told_once, kind)) for kind in ("bare", "ext4", "xfs")
    ]
    cases += [("cpus_come_and_go", cpus_come_and_go), ("who_goes_leaves_nothing", who_goes_leaves_nothing)]
    ktap.main("dontcache_devices_faults", [(name, functools.partial(within, 2 * SECONDS, case)) for name, case in cases])
