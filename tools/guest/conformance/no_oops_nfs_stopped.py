#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An NFS server that is stopped while its client writes, and started again: what was committed is there."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import signal
import time
from pathlib import Path

from dontcache import file_system, forked, opened, pattern, remount
from lib.nfs import serve_by, served, stopped
from row import KIB, NOTHING, Verdict, main, synced_counter, tried

PIECE = 64 * KIB
SECONDS = 2.0
ALL = 1 << 20
"""More than there can be in a pipe."""


def write(path: Path, acknowledged: int) -> None:
    """Appends, and tells each COMMIT, until it is killed or told of an error."""
    with contextlib.suppress(OSError), opened(path) as fd:
        for number in itertools.count():
            os.pwrite(fd, pattern(number * PIECE, PIECE), number * PIECE)
            os.fsync(fd)
            os.write(acknowledged, b".")


def server() -> Verdict:
    figures, wrong = [], []
    for kind in ("ext4", "xfs"):
        with file_system(kind) as root:
            with served(root, Path("/tmp/nfs")) as mounted:
                serve_by("dontcache")
                reader, writer = os.pipe()
                child = forked(functools.partial(write, mounted / "file", writer))
                os.close(writer)
                time.sleep(SECONDS)
                with stopped(root):
                    time.sleep(SECONDS)
                    before = len(os.read(reader, ALL))
                # It is deaf while it waits for the server, which takes what it asks for again.
                time.sleep(SECONDS)
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                after = len(os.read(reader, ALL))
                os.close(reader)
                committed = (before + after) * PIECE
            remount(kind)
            found = (root / "file").read_bytes()
        end = synced_counter()
        tried(before and after, f"a client that commits before and after: {before} and {after} times")
        figures.append(f"{kind} {before} and {after} times 64 KiB committed, {len(found) // KIB} KiB there")
        if found[:committed] != pattern(0, committed):
            wrong.append(f"{kind} has lost what was committed")
        if end != NOTHING:
            wrong.append(f"{kind} counts {end[0]} of {end[1]} when all is written")
    return Verdict(not wrong, "; ".join(figures + wrong))


if __name__ == "__main__":
    main(server)
