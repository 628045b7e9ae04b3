# SPDX-License-Identifier: GPL-2.0
"""A file is truncated in the middle of a large folio, and as a whole."""

import os
from pathlib import Path

from lib.dontcache import counter, opened
from lib.row import PIECE, SIZE, dirty, exact_after, main, tried


def truncate(fd: int, path: Path) -> None:
    # What is not on the drive yet would be written before it is cut off.
    os.fsync(fd)
    dirty(fd)
    before = counter()
    os.ftruncate(fd, SIZE // 2 + PIECE // 2 + 7)
    tried(counter()[1] < before[1], "dirty pages that are truncated")
    with opened(path.with_name("other")) as other:
        dirty(other)
        os.ftruncate(other, 0)


main(lambda: exact_after("truncated", truncate))
