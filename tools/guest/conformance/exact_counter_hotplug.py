# SPDX-License-Identifier: GPL-2.0
"""A CPU goes offline after it has counted dirty pages, and another CPU cleans them."""

import os
from pathlib import Path

from lib.devices import CPU1
from lib.domain import spin_beside
from lib.dontcache import opened
from lib.row import dirty, exact_after, main


def on_cpu1(path: Path) -> None:
    """Writes another file on the CPU that will go."""
    os.sched_setaffinity(0, {1})
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with opened(path.with_name("other")) as fd:
        dirty(fd)


def unplug(fd: int, path: Path) -> None:
    spin_beside(lambda: on_cpu1(path))
    CPU1.write_text("0")
    assert CPU1.read_text() == "0\n"
    try:
        os.fsync(fd)
    finally:
        CPU1.write_text("1")


main(lambda: exact_after("unplugged", unplug))
