#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""DONTCACHE writers beside ordinary writers, mappings, invalidation and syncs of the same pages."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from lib.domain import start_writeback
from lib.dontcache import MIB, PAGE, counter, file_system, opened, write_dontcache
from lib.exactness import told
from lib.row import KIB, NOTHING, SHORT, Verdict, main, synced_counter, tried
from lib.walk import beside

SECONDS = 3 if SHORT else 10
SIZE = MIB


def dontcache(fd: int, at: int) -> None:
    write_dontcache(fd, at, bytes(random.choice((PAGE, 64 * KIB))))


def ordinary(fd: int, at: int) -> None:
    os.pwrite(fd, b"ordinary", at)


def mapped(fd: int, at: int) -> None:
    with mmap.mmap(fd, SIZE) as mapping:
        for place in range(at, SIZE, 16 * PAGE):
            mapping[place] = 1


def clean(fd: int, at: int) -> None:
    start_writeback(fd, at, 16 * PAGE)
    os.posix_fadvise(fd, at, 16 * PAGE, os.POSIX_FADV_DONTNEED)


def sync(fd: int, at: int) -> None:
    os.fdatasync(fd)


def repeat(path: Path, seed: int, action: Callable[[int, int], None]) -> None:
    """Does it somewhere in the file, again and again."""
    random.seed(seed)
    deadline = time.monotonic() + SECONDS
    with opened(path) as fd:
        while time.monotonic() < deadline:
            action(fd, random.randrange(SIZE // PAGE) * PAGE)


def looks() -> list[bool]:
    """Whether pages are counted, again and again while the others run."""
    deadline = time.monotonic() + SECONDS
    seen = []
    while time.monotonic() < deadline:
        seen.append(counter()[0] > 0)
        time.sleep(0.01)
    return seen


def races() -> Verdict:
    figures, kept = [], True
    for kind in ("ext4", "xfs"):
        with file_system(kind) as root:
            path = root / "file"
            path.write_bytes(bytes(SIZE))
            with contextlib.ExitStack() as stack:
                for seed, action in enumerate((dontcache, dontcache, ordinary, mapped, clean, sync)):
                    stack.enter_context(beside(functools.partial(repeat, path, seed, action)))
                seen = looks()
            tried(sum(seen) > SECONDS, f"dirty DONTCACHE pages all the time: at {sum(seen)} of {len(seen)} looks")
            end = synced_counter()
        kept &= end == NOTHING
        figures.append(f"{kind} counted at {sum(seen)} of {len(seen)} looks, synced {told(end)}")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(races)
