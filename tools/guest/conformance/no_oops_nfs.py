# SPDX-License-Identifier: GPL-2.0
"""Writes through each interface to an NFS client, whose server writes buffered, with DONTCACHE, or directly."""

import os

from lib.dontcache import MIB, cached_pages, file_system, opened, pattern, write_dontcache
from lib.nfs import WAYS, serve_by, served
from lib.row import Verdict, main, tried
from lib.ways import write_each_way

SIZE = 4 * MIB


def clients() -> Verdict:
    wrong, left = [], {}
    with file_system("ext4") as root, served(root) as mounted:
        for way in WAYS:
            serve_by(way)
            with opened(mounted / f"{way}-pages") as fd:
                wrong += [f"{way} {text}" for text in write_each_way(fd, "nfs")]
            with opened(mounted / way) as fd, opened(root / way, os.O_RDONLY) as behind:
                for offset in range(0, SIZE, MIB):
                    write_dontcache(fd, offset, pattern(offset, MIB))
                os.fsync(fd)
                left[way] = cached_pages(behind)
                if os.pread(behind, SIZE, 0) != pattern(0, SIZE):
                    wrong.append(f"{way} differs")
    figures = "pages left at the server: " + ", ".join(f"{way} {pages}" for way, pages in left.items())
    tried(left["dontcache"] < left["buffered"], f"a server that writes with DONTCACHE: {figures}")
    return Verdict(not wrong, "; ".join([figures, *wrong]))


main(clients)
