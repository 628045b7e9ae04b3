#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What gathers, be it while a round runs, begins one when it is enough: in a file, in several, in cgroups; less waits."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lib.dontcache import MIB, PAGE, cgroup, file_system, in_cgroup, left_of, opened, write_dontcache
from lib.knobs import adaptive, never_many, never_periodic
from lib.row import BOUND, PATIENCE, Verdict, main, tried, waited
from lib.slow import slow_drive

DELAY = 3
"""Seconds for which what is less waits."""
BOUNDS = {
    "most_ms": DELAY * 1000, "least_ms": DELAY * 1000, "most_kib": 32 << 10, "least_kib": 16 << 10, "inode_kib": 8 << 10,
}  # fmt: skip
"""The least is enough on a drive as slow as this. What a CPU has not added to the sum yet, 2 MiB at most, is little."""
MEANWHILE = ((4 * MIB, False), (18 * MIB, True))
"""What comes while a round runs, and whether that is enough, too. It is not besides what the round is still to write."""
PIECE = 64 << 10


def write(fd: int, offset: int, size: int) -> None:
    for place in range(offset, offset + size, PIECE):
        write_dontcache(fd, place, bytes(PIECE))


def first_round(fd: int) -> None:
    """A wb knows what is enough, and that its drive gets large writes, from then on."""
    write(fd, 0, MIB)
    tried(waited(lambda: left_of(fd) == 0, PATIENCE), "a first round")


def begins(files: Sequence[int], size: int) -> bool:
    """Whether a round begins soon for what was just written to the files, so much together."""

    def left() -> int:
        return sum(left_of(fd) for fd in files)

    took = waited(lambda: left() <= size * 3 // 4 // PAGE, BOUND)
    tried(took is not None or left() == size // PAGE, "a round that wrote enough to be seen")
    return took is not None


@contextlib.contextmanager
def before_delay() -> Iterator[None]:
    """No page has waited for long enough when the body ends."""
    begin = time.monotonic()
    yield
    tried(time.monotonic() - begin < DELAY, "all of it before the delay is over")


def begun_by_files(root: Path, number: int, size: int) -> bool:
    """Whether a round begins soon for what is written to so many files, one after the other."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(opened(root / str(each))) for each in range(number)]
        first_round(files[0])
        with before_delay():
            for fd in files:
                write(fd, 0, size // number)
            return begins(files, size)


def begun_by_cgroups(root: Path, number: int, size: int) -> bool:
    """The same of so many cgroups, each of which has a file and a wb of its own."""

    def write_new(path: Path) -> None:
        with opened(path) as fd:
            write(fd, 0, size // number)

    with contextlib.ExitStack() as stack:
        paths = [root / str(each) for each in range(number)]
        groups = [stack.enter_context(cgroup(f"of-{path.name}")) for path in paths]
        with before_delay():
            for path, group in zip(paths, groups, strict=True):
                in_cgroup(group, lambda path=path: write_new(path))  # type: ignore[misc]
            return begins([stack.enter_context(opened(path)) for path in paths], size)


BEGINS = (
    ("12 MiB of a file", begun_by_files, 1, 12 * MIB, False),
    ("20 MiB of a file", begun_by_files, 1, 20 * MIB, True),
    ("20 MiB of 4 files", begun_by_files, 4, 20 * MIB, False),
    ("36 MiB of 4 files", begun_by_files, 4, 36 * MIB, True),
    ("10 MiB of 10 cgroups", begun_by_cgroups, 10, 10 * MIB, False),
    ("60 MiB of 10 cgroups", begun_by_cgroups, 10, 60 * MIB, True),
    ("24 MiB of 2 cgroups", begun_by_cgroups, 2, 24 * MIB, True),
)


def goes_on(root: Path, size: int) -> bool:
    """Whether a round is followed by one for what has come while it ran, though nobody writes any more."""
    with opened(root / "file") as fd:
        first_round(fd)
        with before_delay():
            write(fd, 0, 20 * MIB)
            if waited(lambda: left_of(fd) <= 12 * MIB // PAGE, BOUND) is None:
                return False
            write(fd, 20 * MIB, size)
            tried(left_of(fd) > size // PAGE, "a round that runs")
            return waited(lambda: left_of(fd) <= size * 3 // 4 // PAGE, BOUND) is not None


def gathered() -> Verdict:
    figures, kept = [], True
    everywhere = os.sched_getaffinity(0)
    # All that is not added yet is this CPU's.
    os.sched_setaffinity(0, {0})
    try:
        with never_periodic(), never_many(), adaptive(**BOUNDS):
            for what, begun, number, size, enough in BEGINS:
                with slow_drive() as disk, file_system("xfs", disk.device) as root:
                    has_begun = begun(root, number, size)
                kept &= has_begun == enough
                figures.append(f"{what}: {'a round' if has_begun else 'no round'}")
            for size, enough in MEANWHILE:
                with slow_drive() as disk, file_system("xfs", disk.device) as root:
                    followed = goes_on(root, size)
                kept &= followed == enough
                figures.append(f"{size // MIB} MiB beside a round: {'another one' if followed else 'no other one'}")
    finally:
        os.sched_setaffinity(0, everywhere)
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(gathered, breaks_c=True)
