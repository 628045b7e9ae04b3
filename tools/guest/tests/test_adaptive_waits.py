#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Pages that wait for others to be written with: who does not wait for them, and that none is forgotten meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lib import ktap
from lib.devices import CPU1, TIMER, null_block
from lib.dontcache import (
    DEBUGFS,
    MIB,
    PAGE,
    core,
    file_system,
    forked,
    frozen,
    left_of,
    opened,
    trace,
    until,
    write_dontcache,
)
from lib.knobs import adaptive, never_periodic
from lib.walk import NULL_BLK

DELAY = 10
"""Seconds that a page may wait: the most that can be set."""
SHORT_DELAY = 2
"""The same where that comes to its end."""
PROMPT = 4
"""Seconds within which all is done that waits for nothing, on a slow machine."""
LOOK = 0.5
"""Seconds until a page is looked at that waits: more than twice as long as one would by default."""


@contextmanager
def waits(seconds: int = DELAY) -> Iterator[str]:
    """A device whose wb, which is new, lets pages wait for so long. Nothing else makes them leave."""
    if core() == "c":
        raise ktap.Skip("the C core has no delay")
    with adaptive(most_ms=seconds * 1000, least_ms=seconds * 1000), never_periodic(), null_block(TIMER) as disk:
        yield disk.device


@contextmanager
def waiting(path: Path | str) -> Iterator[int]:
    """A file with a page that waits."""
    with opened(path) as fd:
        write_dontcache(fd, 0, bytes(PAGE))
        time.sleep(LOOK)
        assert left_of(fd) == 1, "it did not wait"
        yield fd


@contextmanager
def prompt(what: str) -> Iterator[None]:
    """The body does not wait."""
    begin = time.monotonic()
    yield
    took = time.monotonic() - begin
    assert took < PROMPT, f"{what} took {took:.1f} s"


def unmount() -> None:
    for kind in ("ext4", "xfs"):
        with waits() as device, ExitStack() as mounted:
            root = mounted.enter_context(file_system(kind, device))
            with waiting(root / "file"):
                pass
            with prompt(f"the unmount of {kind}"):
                mounted.close()


def freezing() -> None:
    for kind in ("ext4", "xfs"):
        with waits() as device, file_system(kind, device) as root, waiting(root / "file") as fd:
            with prompt(f"to freeze {kind}"), frozen(root):
                assert left_of(fd) == 0, "what waited is not on the drive"


def removal() -> None:
    """A device that goes in good order."""
    with waits() as device, waiting(device), prompt("the removal"):
        (NULL_BLK / "walk" / "power").write_text("0")


def sync() -> None:
    with waits() as device, file_system("xfs", device) as root, waiting(root / "file") as fd, prompt("sync"):
        os.sync()
        assert left_of(fd) == 0


def of_a_cpu_that_goes() -> None:
    """What it has written, so little that it alone has counted that, is written when the delay is over."""

    def on_cpu1(path: Path) -> None:
        os.sched_setaffinity(0, {1})
        with opened(path) as fd:
            write_dontcache(fd, 0, bytes(MIB))

    with waits(SHORT_DELAY) as device, file_system("xfs", device) as root, opened(root / "file") as fd:
        begin = time.monotonic()
        assert os.waitpid(forked(lambda: on_cpu1(root / "file")), 0)[1] == 0
        CPU1.write_text("0")
        try:
            assert left_of(fd) == MIB // PAGE, "the CPU went too late"
            until(lambda: left_of(fd) == 0, SHORT_DELAY + PROMPT, "pages stay")
        finally:
            CPU1.write_text("1")
        took = time.monotonic() - begin
    assert took > SHORT_DELAY * 0.8, f"they were written after {took:.1f} s"


def name_of(fd: int, separator: str) -> str:
    """The device's numbers."""
    number = os.fstat(fd).st_rdev
    return f"{os.major(number)}{separator}{os.minor(number)}"


def fsync() -> None:
    """The flusher may look once for what was written, and writes nothing."""
    with waits(SHORT_DELAY) as device, trace("writeback/writeback_start", "block/block_rq_issue") as lines:
        with waiting(device) as fd:
            with prompt("fsync"):
                os.fsync(fd)
            written = f"block_rq_issue: {name_of(fd, ',')} W"
            before = lines()
            assert left_of(fd) == 0 and any(written in line for line in before), "the write was not seen"
            # Until after the page would have been due.
            time.sleep(SHORT_DELAY + 1)
            after = lines()[len(before) :]
    rounds = sum("reason=dontcache" in line for line in after)
    assert rounds <= 1 and not any(written in line for line in after), f"after the sync: {after}"


def longer_while_writes_are_small() -> None:
    """And shorter while they are large."""
    if core() == "c":
        raise ktap.Skip("the C core has no delay")
    with adaptive(least_ms=20), null_block(TIMER) as disk, opened(disk.device) as fd:

        def delay() -> int:
            until(lambda: left_of(fd) == 0, 30, "pages stay")
            name = name_of(fd, ":")
            wbs = (DEBUGFS / "adaptive/wbs").read_text().splitlines()
            [wb] = [line.split() for line in wbs if line.startswith(f"{name} ")]
            return int(wb[1])

        for offset in range(0, 64 * MIB, MIB):
            write_dontcache(fd, offset, bytes(MIB))
        large = delay()
        for offset in range(0, 16 * MIB, MIB):
            write_dontcache(fd, offset, bytes(PAGE))
            small = delay()
    assert large < 200 == small, f"{large} ms after large writes, {small} ms after small ones"


CASES = (unmount, freezing, removal, sync, fsync, of_a_cpu_that_goes, longer_while_writes_are_small)

if __name__ == "__main__":
    ktap.main("adaptive_waits", [(case.__name__, case) for case in CASES])
