# SPDX-License-Identifier: GPL-2.0
"""splice and sendfile from pages that are dropped while a pipe or another file holds them, and into such pages."""

import os

from lib.dontcache import KIB, MIB, file_system, opened, pattern, write_dontcache
from lib.row import Verdict, main, on_each, tried

PIPE = 64 * KIB


def splice(kind: str) -> Verdict:
    with file_system(kind) as root, opened(root / "file") as fd, opened(root / "copy") as copy:
        write_dontcache(fd, 0, pattern(0, MIB))
        reader, writer = os.pipe()
        taken = os.splice(fd, writer, PIPE, offset_src=0)
        tried(taken, "pages in a pipe")
        os.fsync(fd)
        wrong = ["the pipe"] if os.read(reader, taken) != pattern(0, taken) else []
        write_dontcache(fd, 0, pattern(0, MIB))
        sent = 0
        while sent < MIB and (moved := os.sendfile(copy, fd, sent, MIB - sent)):
            sent += moved
        os.fsync(fd)
        write_dontcache(copy, 0, pattern(0, PIPE))
        os.write(writer, pattern(0, PIPE))
        into = os.splice(reader, copy, PIPE, offset_dst=0)
        tried(into, "a pipe spliced into a file")
        os.fsync(copy)
        wrong += ["the copy"] if os.pread(copy, MIB, 0) != pattern(0, MIB) else []
        os.close(reader)
        os.close(writer)
    return Verdict(not wrong, f"what differs: {', '.join(wrong) or 'nothing'}")


main(lambda: on_each(splice))
