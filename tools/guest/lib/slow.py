# SPDX-License-Identifier: GPL-2.0
"""A slow drive that keeps its flusher busy for long."""

import contextlib
import ctypes
import fcntl
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from lib.devices import TIMER
from lib.dontcache import KIB, MIB, beside, opened, setting
from lib.walk import SECTOR, NullBlock

SPEED = 32 * MIB
"""Bytes a second."""
REQUEST = 256 * KIB
DISK_MIB = 1024
"""So much that no file system begins to write by itself, for fear of having no space."""


SHARE = 60
"""Percent of the dirty limits that are the drive's in any case.

Its share follows from what drives have written of late: beside a fast one it falls to a tenth and less, and background
writeback begins below what a row has dirtied, however high the limits are.
"""


@contextlib.contextmanager
def slow_drive(speed: int = SPEED) -> Iterator[NullBlock]:
    """One request at a time, each of which takes as long as it does at that speed."""
    nanoseconds = 10**9 * REQUEST // speed
    disk = NullBlock(
        DISK_MIB, SECTOR, irqmode=TIMER, completion_nsec=nanoseconds, poll_queues=0, submit_queues=1, hw_queue_depth=1,
        max_sectors=REQUEST // SECTOR,
    )  # fmt: skip
    with disk, setting(Path("/sys/block", Path(disk.device).name, "bdi/min_ratio"), SHARE):
        yield disk


_BLKPG, _ADD_PARTITION, _DEL_PARTITION = 0x1269, 1, 2


@contextlib.contextmanager
def partition(device: str, number: int, start: int, length: int) -> Iterator[str]:
    """A part of the device, in bytes, which shares the device's flusher: nothing is written for it."""
    # struct blkpg_partition, whose names are empty, and struct blkpg_ioctl_arg, which points to it.
    part = ctypes.create_string_buffer(struct.pack("qqi128x0q", start, length, number))

    def change(op: int) -> None:
        with opened(device, os.O_RDWR) as fd:
            fcntl.ioctl(fd, _BLKPG, struct.pack("iiiP", op, 0, len(part) - 1, ctypes.addressof(part)))

    change(_ADD_PARTITION)
    try:
        yield f"{device}{number}"
    finally:
        change(_DEL_PARTITION)


ENOUGH = Path("/tmp/enough")


@contextlib.contextmanager
def meanwhile(functions: Iterable[Callable[[], None]]) -> Iterator[None]:
    """Each runs in a process of its own while the body does: until there is `ENOUGH` of it."""
    with contextlib.ExitStack() as stack:
        stack.callback(ENOUGH.unlink)
        stack.enter_context(beside(*functions))
        stack.callback(ENOUGH.touch)
        yield
