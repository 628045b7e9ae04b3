# SPDX-License-Identifier: GPL-2.0
"""Checks a file system of some format: what stays cached, whether the counter is exact, whether the data is right."""

import contextlib
import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from lib.dontcache import MIB, MKFS, NVME, RWF_DONTCACHE, counter, forget, mounted, opened, run, until, write_dontcache
from lib.dropping import pages_left
from lib.libc import call
from lib.row import KIB, NOTHING

SECONDS = 1
"""Until nothing of what is durable may be cached."""

LENGTHS = (64 * KIB, 100, 700 * KIB + 13, 4 * KIB, MIB)
"""Of writes that follow one another."""
FICLONE = 0x40049409


class Place(NamedTuple):
    """Where a row writes, where the page cache of what it writes is, and the device whose counter counts it."""

    root: Path
    below: Path
    device: str


def can(function: str, *arguments: int) -> bool:
    """Calls a function that the file system may not support; an OSError if it fails otherwise."""
    try:
        call(function, *arguments)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOTTY):
            raise
        return False
    return True


Format = Callable[[bool], AbstractContextManager[Place]]
"""A mounted file system, which is made first if it is to be fresh."""


def plain(kind: str, *options: str, mode: str = "rw") -> Format:
    """The test drive with a file system of this kind, its mkfs's options, and its mount's."""

    @contextlib.contextmanager
    def place(fresh: bool) -> Iterator[Place]:
        if fresh:
            run(*MKFS[kind], *options, NVME)
        with mounted(kind, mode=mode) as root:
            yield Place(root, root, NVME)

    return place


class Steps:
    """Writes files on a fresh file system, and what is in them then."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.noise = random.Random(7)
        self.contents: dict[str, bytearray] = {}
        self.left: dict[str, int] = {}

    def write(self, step: str, name: str, start: int, lengths: tuple[int, ...] = LENGTHS) -> None:
        """Write from there on, and count the pages that stay a second after all is durable and closed."""
        content = self.contents.setdefault(name, bytearray())
        with opened(self.place.root / name) as fd:
            for length in lengths:
                data = self.noise.randbytes(length)
                write_dontcache(fd, start, data)
                content[start : start + length] = data
                start += length
            os.fsync(fd)
        with opened(self.place.below / name, os.O_RDONLY) as fd:
            self.left[step] = pages_left(fd, len(content), SECONDS)

    def read(self) -> None:
        """Read each file from the drive, and count the pages that stay.

        A read passes over a folio that is still locked. On btrfs a folio is up to date before it is unlocked, so one
        read of a hundred leaves a page, with either core. The next read drops it.
        """
        for name, content in self.contents.items():
            with opened(self.place.root / name) as fd, opened(self.place.below / name) as below:
                forget(below, len(content))
                got = bytearray(len(content))
                for _ in range(2):
                    assert os.preadv(fd, [got], 0, RWF_DONTCACHE) == len(got), f"a short read of {name}"
                    assert got == content, f"other data in {name}"
                    self.left[f"by a read of {name}"] = left = pages_left(below, len(content), SECONDS)
                    if not left:
                        break

    def all(self) -> None:
        """New data and old, and what the file system has: a few bytes, blocks without data, clones."""
        self.write("of a few bytes", "few", 0, (100,))
        self.write("behind a few bytes", "few", 100, (64 * KIB,))
        self.write("new", "file", 0)
        self.write("over old", "file", 300 * KIB + 7)
        with opened(self.place.root / "unwritten") as fd:
            if can("fallocate", fd, 0, 0, 4 * MIB):
                self.contents["unwritten"] = bytearray(4 * MIB)
                self.write("over unwritten", "unwritten", MIB)
        with opened(self.place.root / "file") as fd, opened(self.place.root / "clone") as clone:
            has_clones = can("ioctl", clone, FICLONE, fd)
        if has_clones:
            self.contents["clone"] = bytearray(self.contents["file"])
            self.write("over shared", "clone", 5 * KIB)
        self.read()


def wrong_with(file_system: Format) -> list[str]:
    """What is wrong with a format."""
    with file_system(True) as place:
        steps = Steps(place)
        steps.all()
        wrong = [f"{pages} pages left {step}" for step, pages in steps.left.items() if pages]
        try:
            until(lambda: counter(place.device) == NOTHING, 5, "the counter is exact")
        except AssertionError:
            wrong.append(f"the counter is {counter(place.device)}")
    with file_system(False) as place:
        wrong += [
            f"other data in {name}"
            for name, content in steps.contents.items()
            if (place.root / name).read_bytes() != content
        ]
    return wrong


def wrong_with_all(formats: dict[str, Format]) -> dict[str, str]:
    """What is wrong with each."""
    return {name: ", ".join(wrong_with(file_system)) for name, file_system in formats.items()}
