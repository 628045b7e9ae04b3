# SPDX-License-Identifier: GPL-2.0
"""Checks a file system or a device: what stays cached, whether the counter is exact, whether the data is right."""

import contextlib
import errno
import itertools
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from lib.devices import Device, brd
from lib.dontcache import KIB, MIB, MKFS, NVME, RWF_DONTCACHE, call, counter, forget, held, mounted, opened, run, waited
from lib.dontcache import write_dontcache
from lib.row import NOTHING, Verdict, exact, held_counter, of_each, pages_left, told

SECONDS = 1
"""Until nothing of what is durable may be cached."""

LENGTHS = (64 * KIB, 100, 700 * KIB + 13, 4 * KIB, MIB)
"""Of writes that follow one another."""
FRESH = (64 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 1234)
"""The same where only the end is not aligned to a block."""
FICLONE = 0x40049409


class Wrong(Exception):
    """What is wrong with a place, in words."""


class Place(NamedTuple):
    """Where a row writes, where the page cache of what it writes is, and the device whose counter counts it."""

    root: Path
    below: Path
    device: str
    reads: int = 1
    """How many it takes until nothing stays. A read passes over a folio that is still locked. On btrfs and NFS a folio is up
    to date before it is unlocked, so one read of a hundred leaves a page, with either core. The next read drops it."""


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


def plain(kind: str, *options: str, mode: str = "rw", device: str = NVME) -> Format:
    """A device with a file system of this kind, its mkfs's options, and its mount's."""

    @contextlib.contextmanager
    def place(fresh: bool) -> Iterator[Place]:
        if fresh:
            run(*MKFS[kind], *options, device)
        with mounted(kind, device, mode) as root:
            yield Place(root, root, *("btrfs", 2) if kind == "btrfs" else (device, 1))

    return place


def bare(device: str) -> Format:
    """A device without a file system. It is open all the time, because its last close takes its pages away."""

    @contextlib.contextmanager
    def place(fresh: bool) -> Iterator[Place]:
        with opened(device, os.O_RDWR):
            yield Place(Path(device).parent, Path(device).parent, device)

    return place


class Steps:
    """Writes files in a fresh place, and what is in them then. Raises at the first step that leaves pages."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.noise = random.Random(7)
        self.contents: dict[str, bytearray] = {}

    def write(self, step: str, name: str, start: int, lengths: tuple[int, ...] = LENGTHS) -> None:
        """Write from there on; no page may stay once all is durable and closed."""
        content = self.contents.setdefault(name, bytearray())
        with opened(self.place.root / name) as fd:
            for length in lengths:
                data = self.noise.randbytes(length)
                write_dontcache(fd, start, data)
                content[start : start + length] = data
                start += length
            os.fsync(fd)
        with opened(self.place.below / name, os.O_RDONLY) as below:
            if left := pages_left(below, len(content), SECONDS):
                raise Wrong(f"{left} pages left {step}")
        for piece in (64 * KIB, len(content)):
            self.read(step, name, piece)

    def read(self, step: str, name: str, piece: int) -> None:
        """Read the file from the drive, in such pieces; no page may stay."""
        content = self.contents[name]
        got = bytearray(len(content))
        with opened(self.place.root / name, os.O_RDONLY) as fd, opened(self.place.below / name, os.O_RDONLY) as below:
            forget(below, len(content))
            for _ in range(self.place.reads):
                for offset in range(0, len(got), piece):
                    into = memoryview(got)[offset : offset + piece]
                    assert os.preadv(fd, [into], offset, RWF_DONTCACHE) == len(into), f"a short read of {name}"
                assert got == content, f"other data in {name}"
                left = pages_left(below, len(content), SECONDS)
                if not left:
                    return
        raise Wrong(f"{left} pages left {step}, read back by {piece // KIB} KiB")

    def simple(self, name: str) -> None:
        """New data, the same places again, unaligned appends."""
        size = sum(FRESH)
        self.write("new", name, 0, FRESH)
        self.write("over the same", name, 0, FRESH)
        self.write("appended", name, size, (100, 70001))
        self.write("appended again", name, size + 70101, (70001,))

    def all(self) -> None:
        """New data and old, and what the file system has: a few bytes, blocks without data, clones."""
        self.write("of a few bytes", "few", 0, (100,))
        self.write("behind a few bytes", "few", 100, (64 * KIB,))
        self.write("in a new file", "file", 0)
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

    def count(self) -> None:
        """Dirty a page again, and see that it is counted."""
        name = next(iter(self.contents))
        self.contents[name][: 4 * KIB] = bytes(4 * KIB)
        with opened(self.place.root / name) as fd, held():
            time.sleep(0.3)  # A round that was asked for comes after 200 ms, and would write it.
            write_dontcache(fd, 0, bytes(4 * KIB))
            counted = held_counter(self.place.device)
            os.fsync(fd)
        if not exact(counted) or counted == NOTHING:
            raise Wrong(f"{told(counted)} dirty pages counted")


def wrong_with(file_system: Format, steps: Callable[[Steps], None] = Steps.all) -> str:
    """The first thing that is wrong with a format."""
    try:
        with file_system(True) as place:
            done = Steps(place)
            steps(done)
            done.count()
            if waited(lambda: counter(place.device) == NOTHING, 5) is None:
                raise Wrong(f"the counter is {counter(place.device)}")
        with file_system(False) as place:
            for name, content in done.contents.items():
                with opened(place.root / name, os.O_RDONLY) as fd:
                    # A device has no size here, and is larger.
                    if os.pread(fd, max(len(content), os.fstat(fd).st_size), 0) != content:
                        raise Wrong(f"other data in {name}")
    except Wrong as wrong:
        return str(wrong)
    return ""


def wrong_with_all(formats: dict[str, Format]) -> dict[str, str]:
    """What is wrong with each."""
    return {name: wrong_with(file_system) for name, file_system in formats.items()}


def drop_on(devices: Mapping[str, Device]) -> Verdict:
    """What is wrong with simple files on each device, bare and with file systems."""
    wrong = {}
    for (name, device), kind in itertools.product(devices.items(), ("bare", "ext4", "xfs")):
        if device is brd and kind == "xfs":
            continue  # It is too small.
        with device() as node:
            place, file = (bare(node), Path(node).name) if kind == "bare" else (plain(kind, device=node), "file")
            wrong[f"{kind} on {name}"] = wrong_with(place, lambda steps: steps.simple(file))
    return of_each(wrong)
