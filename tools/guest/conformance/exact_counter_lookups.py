# SPDX-License-Identifier: GPL-2.0
"""Page faults look up pages that a DONTCACHE writer is about to count and the flusher is about to clean."""

import functools
import mmap
import os
import random
from pathlib import Path

from lib.dontcache import PAGE, beside, cached_pages, file_system, for_a_while, opened, write_pieces
from lib.row import NOTHING, SHORT, Verdict, main, on_each, synced_counter, told

SECONDS = 3 if SHORT else 10
PAGES = 64


def fault(path: Path) -> None:
    """Stores through a mapping into the page that has come last, at once or somewhat later."""
    faults = 0
    random.seed(1)
    with opened(path) as fd, mmap.mmap(fd, PAGES * PAGE) as mapping:
        for _ in for_a_while(SECONDS):
            cached = cached_pages(fd)
            if cached:
                # The moment is a matter of luck.
                for _ in range(random.randrange(30)):
                    pass
                mapping[(cached - 1) * PAGE] = 1
                mapping.madvise(mmap.MADV_DONTNEED)
                faults += 1
    assert faults > SECONDS, f"{faults} page faults"


def lookups(kind: str) -> Verdict:
    with file_system(kind) as root, opened(root / "file") as fd:
        os.ftruncate(fd, PAGES * PAGE)
        rounds = 0
        with beside(functools.partial(fault, root / "file")):
            for _ in for_a_while(SECONDS):
                write_pieces(fd, PAGES * PAGE, PAGE)
                os.fdatasync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                rounds += 1
        end = synced_counter()
    return Verdict(end == NOTHING, f"{rounds * PAGES} writes, synced {told(end)}")


main(lambda: on_each(lookups), breaks_c=True)
