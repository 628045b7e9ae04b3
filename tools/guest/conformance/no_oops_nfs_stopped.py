# SPDX-License-Identifier: GPL-2.0
"""An NFS server is stopped and started again while its client writes; committed data must be there."""

import contextlib
import functools
import itertools
import os
import signal
import time
from pathlib import Path

from lib.dontcache import KIB, MIB, file_system, forked, opened, pattern, remount
from lib.nfs import serve_by, served, stopped
from lib.row import NOTHING, Verdict, main, on_each, synced_counter, tried

PIECE = 64 * KIB
SECONDS = 2.0


def write(path: Path, acknowledged: int) -> None:
    """Appends, and tells each COMMIT, until it is killed or told of an error.

    A server that has not kept who its clients are lets none go on with a file that it had open.
    """
    with contextlib.suppress(OSError), opened(path) as fd:
        for number in itertools.count():
            os.pwrite(fd, pattern(number * PIECE, PIECE), number * PIECE)
            os.fsync(fd)
            os.write(acknowledged, b".")


def server(kind: str) -> Verdict:
    with file_system(kind) as root:
        with served(root) as mounted:
            serve_by("dontcache")
            reader, writer = os.pipe()
            child = forked(functools.partial(write, mounted / "file", writer))
            os.close(writer)
            time.sleep(SECONDS)
            with stopped(root):
                time.sleep(SECONDS)
            # It is deaf while it waits for the server.
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            with os.fdopen(reader, "rb") as told:
                committed = len(told.read()) * PIECE
            with opened(mounted / "again") as fd:
                os.pwrite(fd, pattern(0, PIECE), 0)
                os.fsync(fd)
        remount(kind)
        found, again = (root / "file").read_bytes(), (root / "again").read_bytes()
    end = synced_counter()
    tried(committed > MIB, f"a client that commits: {committed} bytes")
    right = {
        "what was committed to the server that was started again": again == pattern(0, PIECE),
        "what was committed": found[:committed] == pattern(0, committed),
        f"an exact counter: {end[0]} of {end[1]}": end == NOTHING,
    }
    lost = ", ".join(what for what, there in right.items() if not there) or "nothing"
    return Verdict(all(right.values()), f"{committed // KIB} KiB committed, {len(found) // KIB} KiB there, lost: {lost}")


main(lambda: on_each(server))
