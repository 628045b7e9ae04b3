# SPDX-License-Identifier: GPL-2.0
"""A memory cgroup around a load, so that it meets a limit of its own."""

from __future__ import annotations

import os

from .kernel import Refused, read, write

ROOT = "/sys/fs/cgroup"


class MemoryGroup:
    """A child of the root of cgroup v2 with memory.max; nothing at all without a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.folder = f"{ROOT}/rust-writeback-bench.{os.getpid()}"

    def __enter__(self) -> MemoryGroup:
        if self.limit:
            try:
                write(f"{ROOT}/cgroup.subtree_control", "+memory")
                os.mkdir(self.folder)
            except FileExistsError:
                raise Refused(f"{self.folder} is there already and is somebody else's; remove it") from None
            except OSError as error:
                raise Refused(f"there is no memory cgroup to be had: {error}") from None
            try:
                write(f"{self.folder}/memory.max", str(self.limit))
            except OSError as error:
                os.rmdir(self.folder)
                raise Refused(f"there is no memory cgroup to be had: {error}") from None
        return self

    def __exit__(self, *_: object) -> None:
        if self.limit:
            os.rmdir(self.folder)

    @property
    def prefix(self) -> list[str]:
        """What a command begins with that is to run inside."""
        return ["sh", "-c", f'echo 0 >{self.folder}/cgroup.procs && exec "$@"', "group"] if self.limit else []

    def result(self) -> dict[str, int]:
        """How close the load came to its limit, and how often it ran into it."""
        if not self.limit:
            return {}
        events = dict(line.split() for line in read(f"{self.folder}/memory.events").splitlines())
        if int(events["oom_kill"]):
            raise Refused(f"the load was killed: {self.limit} bytes are not enough memory for it")
        return {"limit": self.limit, "peak": int(read(f"{self.folder}/memory.peak")), "hits": int(events["max"])}
