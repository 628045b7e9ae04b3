# SPDX-License-Identifier: GPL-2.0
"""2000 new files of 9000 bytes, up to the end of a sync: DONTCACHE takes at most 1.1 times as long as buffered

The median of the pairs counts: a busy host holds up one of them.
"""

import os
import statistics
import time
from pathlib import Path

from lib.dontcache import RWF_DONTCACHE, file_system, opened
from lib.row import Verdict, main, on_each

FILES, LENGTH = 2000, 9000
PAIRS = 5
MOST = 1.1


def seconds(folder: Path, flags: int) -> float:
    """The time from the first file to the end of the sync."""
    folder.mkdir()
    os.sync()
    begin = time.monotonic()
    for number in range(FILES):
        with opened(folder / str(number)) as fd:
            assert os.pwritev(fd, [bytes(LENGTH)], 0, flags) == LENGTH
    os.sync()
    return time.monotonic() - begin


def small_files(kind: str) -> Verdict:
    ratios = []
    with file_system(kind) as root:
        for pair in range(PAIRS):
            buffered, dontcache = (seconds(root / f"{pair} {flags}", flags) for flags in (0, RWF_DONTCACHE))
            ratios.append(dontcache / buffered)
    ratio = statistics.median(ratios)
    return Verdict(ratio <= MOST, f"{ratio:.2f} times ({min(ratios):.2f} to {max(ratios):.2f})")


main(lambda: on_each(small_files), breaks_c=True, whole=True)
