# SPDX-License-Identifier: GPL-2.0
"""A hole whose ends are inside of pages is punched into dirty pages."""

from pathlib import Path

from lib.dontcache import MIB, counter, punch_hole
from lib.row import exact_after, main, tried


def punch(fd: int, path: Path) -> None:
    before = counter()
    punch_hole(fd, MIB + 5, MIB)
    tried(counter()[1] < before[1], "dirty pages in the hole")


main(lambda: exact_after("punched", punch))
