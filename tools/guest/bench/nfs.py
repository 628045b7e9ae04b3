# SPDX-License-Identifier: GPL-2.0
"""A place behind an NFS server of the machine's own, which is what reads and writes in the load's mode.

The load itself reads and writes directly, so that no cache of a client hides what the server does.
"""

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from lib import nfs

from .kernel import Refused
from .pages import forget
from .place import Place

OPTIONS = "rsize=262144,wsize=262144,lookupcache=none"
"""Writes of more than 256 KiB come to the server in pieces, with a COMMIT behind them; others are to be
durable one by one. Files that are made behind the client's back are found."""


LOOK_SECONDS = 0.5
"""From look to look at whether there still is a server."""


class Nfs(Place):
    """The files of another place, exported to the loopback interface and mounted again."""

    def __init__(self, behind: Place, largest: int = 0) -> None:
        self.behind = behind
        self.largest = largest
        self.bare = False
        self.device, self.bdi, self.clock = behind.device, behind.bdi, behind.clock
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.behind)
            self.directory = tempfile.mkdtemp()
            stack.callback(os.rmdir, self.directory)
            root = Path(os.path.realpath(self.behind.directory))
            stack.enter_context(nfs.served(root, Path(self.directory), OPTIONS, self.largest))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        with self.stack:
            self.clean()

    def check(self) -> None:
        """Is the server still there?"""
        if not nfs.runs():
            raise Refused("the NFS server was stopped; what was measured until then is worth nothing: begin again")

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Look after the server, for a load that waits for one that is gone cannot even be killed."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(LOOK_SECONDS):
                if not nfs.runs():
                    nfs.give_up(Path(self.directory))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
            self.check()

    def use(self, mode: str) -> None:
        """Have the server read and write like this."""
        try:
            nfs.serve_by(mode)
        except OSError as error:
            raise Refused(f"the server's mode cannot be chosen: {error}") from None

    def server(self) -> list[int]:
        """The server's threads, where they can be seen."""
        return nfs.threads()

    def files(self) -> list[str]:
        """All files, as the server has them."""
        return self.behind.files()

    def sync(self) -> None:
        """The server's: the client keeps nothing."""
        self.behind.sync()

    def begin_cold(self) -> None:
        """Neither end has anything of the files."""
        self.check()
        self.behind.begin_cold()
        forget(super().files())

    def clean(self) -> None:
        """Through the client, which would look for them otherwise; without a server nobody does."""
        for path in super().files() if nfs.runs() else self.behind.files():
            os.unlink(path)
