# SPDX-License-Identifier: GPL-2.0
"""Several DONTCACHE writers of the same pages, beside syncs of these pages."""

import os
import random
from collections.abc import Callable
from functools import partial

from lib.devices import nvme, target
from lib.dontcache import KIB, MIB, PAGE, for_a_while, in_child, write_dontcache
from lib.row import SHORT, Verdict, main, nothing_left, pages_left

SECONDS = 3 if SHORT else 20
SIZE = MIB
LENGTHS = (100, PAGE, 64 * KIB)


def write(fd: int) -> None:
    length = random.choice(LENGTHS)
    write_dontcache(fd, random.randrange(SIZE - length), bytes(length))


def repeat(fd: int, seed: int, action: Callable[[int], None]) -> None:
    """Again and again."""
    random.seed(seed)
    for _ in for_a_while(SECONDS):
        action(fd)


def writers() -> Verdict:
    left = {}
    for kind in ("bare", "ext4", "xfs"):
        with nvme() as node, target(kind, node) as fd:
            if kind != "bare":
                # A write behind the end of a file may leave the page in which the file ended: no promise.
                os.ftruncate(fd, SIZE)
            in_child(*(partial(repeat, fd, nr, action) for nr, action in enumerate((write, write, write, os.fdatasync))))
            os.fsync(fd)
            left[kind] = pages_left(fd, SIZE, 2)
    return nothing_left(left)


main(writers, breaks_c=True)
