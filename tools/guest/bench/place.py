# SPDX-License-Identifier: GPL-2.0
"""Where a load writes to: the files of a fresh file system, or the bare device."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import Self

from .kernel import Refused, disk_of
from .pages import cached_pages, forget

UUID = "52555354-5752-4954-4542-41434b000001"
"""Always the same one, for ext4 places its directories by what it hashes with it."""

MKFS = {
    "xfs": ["mkfs.xfs", "-f", "-q", "-K", "-m", f"uuid={UUID}"],
    "ext4": ["mkfs.ext4", "-F", "-q", "-U", UUID, "-E", f"hash_seed={UUID},lazy_itable_init=0"],
}
"""Nothing of ext4 is left to a thread that writes it beside the load, which would be counted as the load's."""
BARE = "device"
LARGE = "large.data"
"""The file of a load that has only one."""

MOST_WARM = 256
"""Pages that may be cached when a load begins: metadata of a device, for instance."""


class Place:
    """Made, used and left again. What was on the device is lost."""

    clock = "cpu"
    """Which clock fio takes. Unless it is told, it tries one first, with threads that look like jobs."""

    flags = os.O_RDONLY
    """How a bare device is held."""

    def __init__(self, device: str, file_system: str) -> None:
        self.device, self.file_system, self.directory = device, file_system, "/mnt/bench"
        self.bare = file_system == BARE
        self.behind: Place = self
        """where the files are that are seen here"""
        self.bdi = disk_of(os.stat(device).st_rdev)

    def __enter__(self) -> Self:
        if self.bare:
            # Whoever closes a device last takes its pages out of the cache: let that not be fio.
            self.descriptor = os.open(self.device, self.flags)
            return self
        os.makedirs(self.directory, exist_ok=True)
        mount = ["mount", "-t", self.file_system, self.device, self.directory]
        for command in ([*MKFS[self.file_system], self.device], mount):
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                raise Refused(f"{' '.join(command)}: {' '.join(result.stderr.split())[-300:]}")
        return self

    def __exit__(self, *_: object) -> None:
        if self.bare:
            os.close(self.descriptor)
        else:
            self.clean()
            subprocess.run(["umount", self.directory], check=True)

    @property
    def environment(self) -> dict[str, str]:
        """What a job file takes from outside, besides its mode."""
        large = self.device if self.bare else os.path.join(self.directory, LARGE)
        return {"BENCH_DIRECTORY": self.directory, "BENCH_FILE": large, "BENCH_CLOCK": self.clock}

    def watched(self) -> contextlib.AbstractContextManager[None]:
        """While a load runs: what it waits for may go away, after which it is let go and refused."""
        return contextlib.nullcontext()

    def use(self, mode: str) -> None:
        """Be read and written in this mode, where that is not the load's own affair."""

    def server(self) -> list[int]:
        """The processes that read and write for the load."""
        return []

    def files(self) -> list[str]:
        """All files that a load has made here."""
        if self.bare:
            return [self.device]
        return [entry.path for entry in os.scandir(self.directory) if entry.is_file()]

    def sync(self) -> None:
        """Have all of the load reach the device, and leave its cache: sync(2) does not flush a bare one."""
        if self.bare:
            os.fsync(self.descriptor)
        else:
            os.sync()

    def begin_cold(self) -> None:
        """Nothing dirty, and none of the files cached."""
        self.sync()
        forget(self.files())

    def clean(self) -> None:
        """Remove the files; a device keeps what it holds."""
        if not self.bare:
            for path in self.files():
                os.unlink(path)


class Machine(Place):
    """A place on real hardware: others use the machine, and maybe the drive, at the same time."""

    clock = "clock_gettime"

    def sync(self) -> None:
        """Of what is dirty, write our own only."""
        for path in self.files():
            with open(path, "rb") as file:
                os.fsync(file.fileno())

    def begin_cold(self) -> None:
        """The same, and nothing that others have cached is taken from them."""
        super().begin_cold()
        left = sum(cached_pages(self.files()).values())
        if left > MOST_WARM:
            raise Refused(f"{left} pages of the files stayed cached before the load; does another program use them?")


class Folder(Machine):
    """A folder that was made for this; whoever made it removes it."""

    def __init__(self, directory: str) -> None:
        self.device, self.directory, self.bare, self.behind = "", directory, False, self
        self.bdi = disk_of(os.stat(directory).st_dev)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clean()


class Disk(Machine):
    """A block device that nobody else uses, nor can begin to use, while this lasts."""

    flags = os.O_RDWR | os.O_EXCL
