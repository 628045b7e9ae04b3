# SPDX-License-Identifier: GPL-2.0
"""Each way to write a page with DONTCACHE: flags of open and of the write in every combination, each interface."""

from __future__ import annotations

import errno
import itertools
import mmap
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from dontcache import PAGE, opened, pattern
from interfaces import INTERFACES
from row import tried

OPEN = {"O_DIRECT": os.O_DIRECT, "O_SYNC": os.O_SYNC, "O_DSYNC": os.O_DSYNC, "O_APPEND": os.O_APPEND}
RWF = {"NOWAIT": os.RWF_NOWAIT, "APPEND": os.RWF_APPEND, "SYNC": os.RWF_SYNC, "HIPRI": os.RWF_HIPRI}
REFUSALS = (errno.EAGAIN, errno.EOPNOTSUPP)
"""What a write that must not wait, or that the file system does not take, may end with."""


@dataclass
class Outcome:
    """How many pages each interface has written, how many were refused, and what was wrong."""

    written: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.written.total()} written, {self.refused} refused"

    def tried(self) -> None:
        """Raises unless each interface has written some."""
        tried(all(self.written[name] for name in INTERFACES), f"each interface: {self.written}, {self.wrong[:3]}")


def combinations(names: Mapping[str, int]) -> Iterator[frozenset[str]]:
    """Every set of the names."""
    for count in range(len(names) + 1):
        yield from map(frozenset, itertools.combinations(names, count))


def may_refuse(interface: str, flags: frozenset[str], error: int | None) -> bool:
    """Is the error one that these flags may meet?"""
    return (
        error in REFUSALS
        or (error == errno.ENOSPC and bool(flags & {"O_APPEND", "APPEND"}))  # a device has its size
        or (error == errno.EINVAL and interface == "io_uring" and "HIPRI" in flags)  # that takes another ring
        or (error == errno.EINVAL and flags >= {"O_DIRECT", "O_APPEND"})  # NFS does not open that
    )


def write_each_way(fd: int, always: frozenset[str] = frozenset(), never: frozenset[str] = frozenset()) -> Outcome:
    """A page in each way whose flags have all of these and none of those; what was written is read back."""
    outcome = Outcome()
    # What is cached ahead of a direct write is dropped by it, which one that must not wait does not do.
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    page = mmap.mmap(-1, PAGE)
    ways = itertools.product(INTERFACES.items(), combinations(OPEN), combinations(RWF))
    for number, ((interface, write), to_open, to_write) in enumerate(ways):
        flags = to_open | to_write
        if always - flags or never & flags:
            continue
        page[:] = pattern(number * PAGE, PAGE)
        at = os.lseek(fd, 0, os.SEEK_END) if flags & {"O_APPEND", "APPEND"} else number * PAGE
        try:
            with opened(f"/proc/self/fd/{fd}", reduce(or_, (OPEN[name] for name in to_open), os.O_RDWR)) as file:
                took = write(file, page, at, reduce(or_, (RWF[name] for name in to_write), 0))
        except OSError as error:
            outcome.refused += 1
            if not may_refuse(interface, flags, error.errno):
                outcome.wrong.append(f"{interface} {'|'.join(sorted(flags))}: {error}")
            continue
        outcome.written[interface] += 1
        if took != PAGE or os.pread(fd, PAGE, at) != page[:]:
            outcome.wrong.append(f"{interface} {'|'.join(sorted(flags))}: {took} bytes")
    return outcome
