# SPDX-License-Identifier: GPL-2.0
"""Aligned and unaligned writes of an NFS server that writes with DONTCACHE, a second after its client's COMMIT."""

import os
import time

from lib.dontcache import MIB, cached_pages, file_system, opened, write_pieces
from lib.nfs import serve_by, served
from lib.row import Verdict, main, nothing_left, on_each, tried

SIZE, SHIFT = 16 * MIB, 700
WRITES = {
    "buffered": ("buffered", 0),
    "whole pages": ("dontcache", 0),
    "shifted": ("dontcache", SHIFT),
    "shifted, directly": ("direct", SHIFT),
}
"""How the server writes, and from where on."""
RESTS = 1.2
"""Seconds: the page that a file ends in may stay for one."""


def server(kind: str) -> Verdict:
    left = {}
    with file_system(kind) as root, served(root) as mounted:
        for name, (way, shift) in WRITES.items():
            serve_by(way)
            with opened(mounted / name) as fd:
                write_pieces(fd, SIZE, MIB, flags=0, start=shift)
                os.fsync(fd)
            time.sleep(RESTS)
            with opened(root / name, os.O_RDONLY) as behind:
                left[name] = cached_pages(behind)
    tried(left.pop("buffered"), "a buffered server that keeps what it writes")
    return nothing_left(left)


main(lambda: on_each(server), breaks_c=True)
