# SPDX-License-Identifier: GPL-2.0
"""A DONTCACHE page beside a file with much data that was dirtied just before, for which nothing was kicked.

That file was written with DONTCACHE as well, but nothing of that is dirty any more.
"""

import os

from lib.dontcache import MIB, PAGE, cachestat, file_system, never_many, never_periodic, opened, waited, write_dontcache
from lib.dontcache import write_pieces
from lib.row import Verdict, main, on_each, tried

MUCH = 64 * MIB
SMALL = 2 * MIB
"""So much of it is written page by page: no look at some folios can tell that all are ordinary."""
WRITES = 10


def others(kind: str) -> Verdict:
    with file_system(kind) as root, opened(root / "much") as much, opened(root / "page") as fd:
        with never_periodic(), never_many():
            write_dontcache(much, 0, bytes(PAGE))
            # What making the files has dirtied is not looked at.
            os.sync()
            write_pieces(much, SMALL, PAGE, flags=0)
            write_pieces(much, MUCH - SMALL, MIB, flags=0, start=SMALL)
            tried(cachestat(much).dirty == MUCH // PAGE, "pages that stay dirty")
            unserved = 0
            for number in range(WRITES):
                write_dontcache(fd, number * PAGE, bytes(PAGE))
                unserved += waited(lambda: cachestat(fd).dirty == 0, 1) is None
            written = MUCH // PAGE - cachestat(much).dirty
    kept = not written and not unserved
    return Verdict(kept, f"{WRITES} kicks: {written} pages of the other file written, {unserved} own pages not")


main(lambda: on_each(others), breaks_c=True)
