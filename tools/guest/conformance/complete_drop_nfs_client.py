# SPDX-License-Identifier: GPL-2.0
"""Writes with DONTCACHE to files of an NFS client, of one page and more, a second after fsync or close."""

import os
import time

from lib.dontcache import MIB, cached_pages, file_system, opened, pattern, write_dontcache
from lib.nfs import serve_by, served
from lib.row import Verdict, main, nothing_left, tried

SIZES = {"a page": 4096, "a request": 64 << 10, "many requests": 16 * MIB}
RESTS = 1.2
"""Seconds: the page that a file ends in may stay for one."""


def client() -> Verdict:
    left = {}
    with file_system("xfs") as root, served(root) as mounted:
        serve_by("buffered")
        with opened(mounted / "buffered") as fd:
            os.pwrite(fd, pattern(0, MIB), 0)
            os.fsync(fd)
            tried(cached_pages(fd), "a client that keeps what it writes")
        for name, size in SIZES.items():
            for end in ("fsync", "close"):
                path = mounted / f"{name} {end}"
                with opened(path) as fd:
                    for offset in range(0, size, MIB):
                        write_dontcache(fd, offset, pattern(offset, min(size, MIB)))
                    if end == "fsync":
                        os.fsync(fd)
                time.sleep(RESTS)
                with opened(path, os.O_RDONLY) as fd:
                    left[f"{name}, {end}"] = cached_pages(fd)
    return nothing_left(left)


main(client)
