# SPDX-License-Identifier: GPL-2.0
"""Aligned and unaligned writes of an NFS server that writes with DONTCACHE, a second after its client's COMMIT."""

import os
import time
from pathlib import Path

from lib.dontcache import MIB, cached_pages, file_system, opened, pattern
from lib.nfs import serve_by, served
from lib.row import Verdict, main, nothing_left, tried

SIZE, SHIFT = 16 * MIB, 700
RESTS = 1.2
"""Seconds: the page that a file ends in may stay for one."""


def server() -> Verdict:
    left, most = {}, 0
    for kind in ("ext4", "xfs"):
        with file_system(kind) as root, served(root, Path("/tmp/nfs")) as mounted:
            for name, way, shift in (
                ("buffered", "buffered", 0),
                ("whole pages", "dontcache", 0),
                ("shifted", "dontcache", SHIFT),
                ("shifted, directly", "direct", SHIFT),
            ):
                serve_by(way)
                with opened(mounted / name) as fd:
                    for offset in range(0, SIZE, MIB):
                        assert os.pwrite(fd, pattern(offset, MIB), shift + offset) == MIB
                    os.fsync(fd)
                time.sleep(RESTS)
                with opened(root / name, os.O_RDONLY) as behind:
                    pages = cached_pages(behind)
                if way == "buffered":
                    most = pages
                else:
                    left[f"{kind} {name}"] = pages
            tried(most, "a buffered server that keeps what it writes")
    return nothing_left(left)


main(server, breaks_c=True)
