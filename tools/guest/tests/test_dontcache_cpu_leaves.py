#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A CPU goes offline while pages in its ring wait to be dropped."""

import functools
import os

from lib import ktap
from lib.devices import CPU1, null_timer
from lib.dontcache import MIB, PAGE, cached_pages, core, forget, opened, until, within, write_dontcache

GOINGS = 20
"""How often CPU 1 goes offline."""
FEW = PAGE
"""A bio of so much ends in its interrupt."""


def its_pages_are_dropped() -> None:
    """Pages that the interrupts of a CPU have put into its ring are dropped, even if the CPU goes offline meanwhile."""
    waited = 0
    with null_timer() as node, opened(node, os.O_RDWR) as fd:
        for turn in range(GOINGS):
            try:
                os.sched_setaffinity(0, {1})
                forget(fd)
                write_dontcache(fd, turn * FEW, bytes(FEW))
                os.fsync(fd)
                waited += cached_pages(fd, MIB) > 0
                CPU1.write_text("0")
                until(lambda: cached_pages(fd, MIB) == 0, 1, "the pages of CPU 1 are dropped")
            finally:
                CPU1.write_text("1")
    if core() == "rust":
        assert waited, "no page waited when CPU 1 went offline"


if __name__ == "__main__":
    ktap.main("dontcache_cpu_leaves", [("its_pages_are_dropped", functools.partial(within, 120, its_pages_are_dropped))])
