# SPDX-License-Identifier: GPL-2.0
"""Another program reads, splices, maps or writes the pages between the write and its writeback: they must stay."""

import mmap
import os
import time

from lib.dontcache import PAGE, cached_pages, file_system, flusher_held, opened, waited
from lib.row import PIECE, Verdict, dirty, main, on_each, tried

PAGES = PIECE // PAGE
OTHERS = ("read", "mapped", "written", "spliced")
"""What is done to the first pages of each piece but the last."""


def not_others(kind: str) -> Verdict:
    with file_system(kind) as root, opened(root / "file") as fd, opened(os.devnull, os.O_WRONLY) as null:
        with flusher_held():
            dirty(fd, 5 * PIECE)
            os.pread(fd, PAGE, 0)
            with mmap.mmap(fd, PIECE, offset=PIECE) as mapping:
                mapping[0]  # maps the page
            os.pwrite(fd, b"ordinary", 2 * PIECE)
            os.sendfile(null, fd, 3 * PIECE, PAGE)
            tried(cached_pages(fd) == 5 * PAGES, "pages that are all there before they are written")
        os.fsync(fd)
        # Pages of a folio go or stay together, so that one page says it of them.
        waited(lambda: cached_pages(fd, PIECE, 4 * PIECE) == 0, 5)
        time.sleep(0.1)
        stay = {name: cached_pages(fd, PAGE, number * PIECE) for number, name in enumerate(OTHERS)}
        own = cached_pages(fd, PIECE, 4 * PIECE)
    words = ", ".join(f"{name} {'stays' if pages else 'is gone'}" for name, pages in stay.items())
    return Verdict(all(stay.values()) and not own, f"what was {words}; {own} of the writer's own pages left")


main(lambda: on_each(not_others), breaks_c=True)
