# SPDX-License-Identifier: GPL-2.0
"""Writes through each interface to an NFS client, whose server writes buffered, with DONTCACHE, or directly."""

import os

from lib.dontcache import MIB, PAGE, cached_pages, file_system, opened, pattern, write_dontcache
from lib.nfs import WAYS, serve_by, served
from lib.row import Verdict, main, tried
from lib.ways import write_each_way

SIZE = 4 * MIB


def clients() -> Verdict:
    figures, wrong, left = [], [], {}
    with file_system("ext4") as root, served(root) as mounted:
        for way in WAYS:
            serve_by(way)
            with opened(mounted / f"{way}-pages") as fd:
                outcome = write_each_way(fd, "nfs")
            outcome.tried()
            wrong += [f"{way} {text}" for text in outcome.wrong]
            with opened(mounted / way) as fd, opened(root / way, os.O_RDONLY) as behind:
                for offset in range(0, SIZE, MIB):
                    write_dontcache(fd, offset, pattern(offset, MIB))
                os.fsync(fd)
                left[way] = cached_pages(behind)
                figures.append(
                    f"{way} server: {outcome}, "
                    f"{left[way]} of {SIZE // PAGE} pages left there, {cached_pages(fd)} at the client"
                )
                if os.pread(behind, SIZE, 0) != pattern(0, SIZE):
                    wrong.append(f"{way} differs")
    tried(left["dontcache"] < left["buffered"], f"a server that writes with DONTCACHE: {left}")
    return Verdict(not wrong, "; ".join(figures + wrong))


main(clients)
