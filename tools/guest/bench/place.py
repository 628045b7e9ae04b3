# SPDX-License-Identifier: GPL-2.0
"""Where a load writes to: the files of a fresh file system, or the bare device."""

from __future__ import annotations

import os
import subprocess

from .kernel import Refused
from .pages import forget

MKFS = {"xfs": ["mkfs.xfs", "-f", "-q", "-K"], "ext4": ["mkfs.ext4", "-F", "-q"]}
BARE = "device"
LARGE = "large.data"
"""The file of a load that has only one."""


class Place:
    """Made, used and left again. What was on the device is lost."""

    def __init__(self, device: str, file_system: str, directory: str) -> None:
        self.device = device
        self.file_system = file_system
        self.directory = directory
        self.bare = file_system == BARE
        number = os.stat(device).st_rdev
        self.bdi = f"{os.major(number)}:{os.minor(number)}".encode()
        self.descriptor = -1

    def __enter__(self) -> Place:
        if self.bare:
            # Whoever closes a device last takes its pages out of the cache: let that not be fio.
            self.descriptor = os.open(self.device, os.O_RDONLY)
            return self
        os.makedirs(self.directory, exist_ok=True)
        for command in (
            [*MKFS[self.file_system], self.device],
            ["mount", "-t", self.file_system, self.device, self.directory],
        ):
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
        return {"BENCH_DIRECTORY": self.directory, "BENCH_FILE": large}

    def files(self) -> list[str]:
        """All files that a load has made here."""
        if self.bare:
            return [self.device]
        return [entry.path for entry in os.scandir(self.directory) if entry.is_file()]

    def begin_cold(self) -> None:
        """Nothing dirty, and none of the files cached."""
        os.sync()
        forget(self.files())

    def clean(self) -> None:
        """Remove the files; a device keeps what it holds."""
        if not self.bare:
            for path in self.files():
                os.unlink(path)
