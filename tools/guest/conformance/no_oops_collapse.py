# SPDX-License-Identifier: GPL-2.0
"""MADV_COLLAPSE maps a large folio that is dirty and dropbehind: it stays as an ordinary folio, with its data"""

import mmap
import os
import re
from pathlib import Path

from lib.dontcache import MIB, counter, file_system, forget, held, left_of, opened, pattern, write_dontcache
from lib.row import NOTHING, Verdict, main, on_each, pages_left, synced_counter, tried

HUGE = 2 * MIB
MADV_COLLAPSE = 25


def collapse(kind: str) -> Verdict:
    with file_system(kind) as root, opened(root / "file") as fd:
        with held():
            write_dontcache(fd, 0, pattern(0, HUGE))
            with mmap.mmap(fd, HUGE, mmap.MAP_SHARED) as view:
                view.madvise(MADV_COLLAPSE)
                mapped = sum(map(int, re.findall(r"^FilePmdMapped: +(\d+) kB", Path("/proc/self/smaps").read_text(), re.M)))
                dirty, counted = left_of(fd), counter()
                os.fsync(fd)
                synced = pages_left(fd, HUGE, 1)
                same = view[:] == pattern(0, HUGE)
        tried(mapped and dirty, f"{mapped} KiB mapped, {dirty} pages dirty")
        forget(fd)
        write_dontcache(fd, 0, pattern(HUGE, HUGE))
        os.fsync(fd)
        left = pages_left(fd, HUGE, 2)
        end = synced_counter()
    kept = same and not left and counted[0] == counted[1] and end == NOTHING
    return Verdict(kept, f"{mapped} KiB mapped, {synced} pages stay mapped, {left} of the next write")


main(lambda: on_each(collapse), breaks_c=True)
