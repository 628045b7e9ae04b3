# SPDX-License-Identifier: GPL-2.0
"""DONTCACHE writers beside ordinary writers, mappings, invalidation and syncs of the same pages."""

import mmap
import os
import random
import struct
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lib.dontcache import KIB, MIB, PAGE, beside, counter, file_system, for_a_while, opened, start_writeback, write_dontcache
from lib.row import NOTHING, SHORT, Verdict, main, on_each, synced_counter, told, tried

SECONDS = 3 if SHORT else 10
SIZE = MIB


LAST = mmap.mmap(-1, PAGE)
"""Where a DONTCACHE writer has written last, of which all processes know. The others go there, or a dirty page of its
would hardly ever be met: most are somebody else's, too."""


def dontcache(fd: int, at: int) -> None:
    clean(fd, at)  # or it would find the pages of others
    write_dontcache(fd, at, bytes(random.choice((PAGE, 64 * KIB))))
    struct.pack_into("Q", LAST, 0, at)


def ordinary(fd: int, at: int) -> None:
    os.pwrite(fd, b"ordinary", at)


def mapped(fd: int, at: int) -> None:
    # A page alone: who maps the whole file keeps all of it cached.
    with mmap.mmap(fd, PAGE, offset=at) as mapping:
        mapping[0] = 1


def clean(fd: int, at: int) -> None:
    start_writeback(fd, at, 16 * PAGE)
    os.posix_fadvise(fd, at, 16 * PAGE, os.POSIX_FADV_DONTNEED)


def sync(fd: int, at: int) -> None:
    os.fdatasync(fd)


def place(action: Callable[[int, int], None]) -> int:
    """Somewhere in the file; half of the time where a DONTCACHE writer was last."""
    if action is dontcache or random.random() < 0.5:
        return random.randrange(SIZE // PAGE) * PAGE
    at: int = struct.unpack_from("Q", LAST)[0]
    return at


def repeat(path: Path, seed: int, action: Callable[[int, int], None]) -> None:
    """Does it again and again."""
    random.seed(seed)
    with opened(path) as fd:
        for _ in for_a_while(SECONDS):
            action(fd, place(action))


def looks() -> list[bool]:
    """Whether pages are counted, again and again while the others run."""
    seen = []
    for _ in for_a_while(SECONDS):
        seen.append(counter()[0] > 0)
        time.sleep(0.01)
    return seen


def races(kind: str) -> Verdict:
    with file_system(kind) as root:
        path = root / "file"
        with opened(path) as fd:
            # Blocks and no pages: those of a large folio would stay, as only parts of it are ever dropped.
            os.pwrite(fd, bytes(SIZE), 0)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        actions = (dontcache, dontcache, ordinary, mapped, clean, sync)
        with beside(*(partial(repeat, path, seed, action) for seed, action in enumerate(actions))):
            seen = looks()
        tried(sum(seen) > SECONDS, f"dirty DONTCACHE pages all the time: at {sum(seen)} of {len(seen)} looks")
        end = synced_counter()
    return Verdict(end == NOTHING, f"counted at {sum(seen)} of {len(seen)} looks, synced {told(end)}")


main(lambda: on_each(races))
