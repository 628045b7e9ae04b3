# SPDX-License-Identifier: GPL-2.0
"""Writes with DONTCACHE to files of an NFS client, of one page and more, a second after fsync or close; its counter."""

import os
import time

from lib.dontcache import MIB, cached_pages, file_system, held, opened, pattern, write_dontcache
from lib.nfs import serve_by, served
from lib.row import Verdict, held_counter, main, nothing_left, pages_left, tried

SIZES = {"a page": 4096, "a request": 64 << 10, "many requests": 16 * MIB}


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
                with opened(path, os.O_RDONLY) as fd:
                    left[f"{name}, {end}"] = pages_left(fd, size, 1)
                    assert os.pread(fd, size, 0) == pattern(0, size), f"other data in {path.name}"
        with held(), opened(mounted / "counted") as fd:
            time.sleep(0.3)  # A round that was asked for comes after 200 ms, and would write it.
            write_dontcache(fd, 0, pattern(0, MIB))
            counted, true = held_counter(str(mounted))
        left["wrongly counted"] = abs(counted - true) if true else -1
    return nothing_left(left)


main(client)
