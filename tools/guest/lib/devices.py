# SPDX-License-Identifier: GPL-2.0
"""Block devices that differ in the context in which a bio completes. Each is a context with the name of its node."""

import contextlib
import ctypes
import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from lib.dontcache import KIB, MIB, NVME, file_system, opened, run, setting
from lib.walk import SECTOR, NullBlock

DISK_MIB = 320
"""There is no xfs below 300 MiB."""
INLINE, SOFTIRQ, TIMER = range(3)
"""Where a null_blk completes."""
BAD = MIB // 2
"""Where a device fails."""
INNER = Path("/tmp/inner")
"""Where a second file system can be mounted."""
CPU1 = Path("/sys/devices/system/cpu/cpu1/online")
"""The CPU that comes and goes."""

Device = Callable[[], AbstractContextManager[str]]


def nvme() -> AbstractContextManager[str]:
    """The test drive: in its interrupt."""
    return contextlib.nullcontext(NVME)


def brd() -> AbstractContextManager[str]:
    """Inside submission, by the submitter. It has 4 MiB."""
    return contextlib.nullcontext("/dev/ram0")


def null_block(irqmode: int) -> NullBlock:
    """A null_blk that completes where it is told to, by its timer after 100 us."""
    # A queue for polling, which there is by default, makes a softirq needless.
    return NullBlock(DISK_MIB, SECTOR, irqmode=irqmode, completion_nsec=100_000, poll_queues=0)


def _null(irqmode: int) -> Device:
    @contextlib.contextmanager
    def device() -> Iterator[str]:
        with null_block(irqmode) as disk:
            yield disk.device

    return device


null_inline, null_softirq, null_timer = map(_null, (INLINE, SOFTIRQ, TIMER))
"""Inside submission, in an RCU read-side section; in a softirq; in the interrupt of a timer."""


@contextlib.contextmanager
def zram() -> Iterator[str]:
    """Inside submission, by the submitter."""
    settings = Path("/sys/block/zram0")
    (settings / "disksize").write_text(f"{DISK_MIB}M")
    try:
        yield "/dev/zram0"
    finally:
        (settings / "reset").write_text("1")


@contextlib.contextmanager
def loop(backing: Path = Path("/tmp/backing"), direct: str = "off") -> Iterator[str]:
    """Once a worker has written to the file below, which is new, and by default on tmpfs."""
    with open(backing, "wb") as file:
        file.truncate(DISK_MIB * MIB)
    try:
        device = run("losetup", f"--direct-io={direct}", "--find", "--show", backing).strip()
        try:
            yield device
        finally:
            run("losetup", "--detach", device)
    finally:
        backing.unlink()


@contextlib.contextmanager
def mapped(name: str, mib: int, table: str) -> Iterator[str]:
    """A device of device-mapper: its target, and the target's parameters."""
    run("dmsetup", "create", "--noudevsync", name, "--table", f"0 {mib * MIB // SECTOR} {table}")
    try:
        # No udev is there to give it the name that was asked for.
        yield "/dev/" + run("dmsetup", "info", "--columns", "--noheadings", "-o", "blkdevname", name).strip()
    finally:
        run("dmsetup", "remove", "--noudevsync", name)


@contextlib.contextmanager
def suspended(node: str) -> Iterator[None]:
    """The device of device-mapper holds all requests back while the body runs."""
    name = Path("/sys/block", Path(node).name, "dm/name").read_text().strip()
    run("dmsetup", "suspend", "--noflush", "--nolockfs", name)
    try:
        yield
    finally:
        run("dmsetup", "resume", name)


@contextlib.contextmanager
def linear() -> Iterator[str]:
    """Device-mapper: where the device below completes its clone, here in the interrupt of a timer."""
    with null_timer() as below, mapped("linear", DISK_MIB, f"linear {below} 0") as node:
        yield node


@contextlib.contextmanager
def parts(count: int) -> Iterator[list[str]]:
    """Parts of the test drive, whose first MiB is zero."""
    with contextlib.ExitStack() as stack:
        nodes = []
        for nr in range(count):
            start = nr * DISK_MIB * MIB // SECTOR
            nodes.append(stack.enter_context(mapped(f"part{nr}", DISK_MIB, f"linear {NVME} {start}")))
            with opened(nodes[-1], os.O_WRONLY | os.O_DSYNC) as fd:
                os.pwrite(fd, bytes(MIB), 0)
        yield nodes


def over(count: int, target: str, mib: int = DISK_MIB) -> Device:
    """A target over parts of the drive, whose nodes its parameters name by number."""

    @contextlib.contextmanager
    def device() -> Iterator[str]:
        with parts(count) as nodes, mapped("over", mib, target.format(*nodes)) as node:
            yield node

    return device


KEY = "0123456789abcdef" * 8
CRYPT = f"crypt aes-xts-plain64 {KEY} 0 {{0}} 0"
STACKS: dict[str, Device] = {
    "dm-crypt": over(1, CRYPT),
    "dm-crypt without workqueues": over(1, f"{CRYPT} 2 no_read_workqueue no_write_workqueue"),
    "dm-log-writes": over(2, "log-writes {0} {1}"),
    "dm-snapshot": over(2, "snapshot {0} {1} N 8"),
    "raid1": over(2, "raid raid1 2 0 nosync 2 - {0} - {1}"),
    "raid0": over(2, "raid raid0 1 128 2 - {0} - {1}", 2 * DISK_MIB),
    # Unlike the others, this one does not start without metadata.
    "raid10": over(4, "raid raid10 2 128 nosync 2 {0} {1} {2} {3}"),
    "raid5": over(3, "raid raid5_ls 2 128 nosync 3 - {0} - {1} - {2}", 2 * DISK_MIB),
}
"""What needs the kernel with drivers for it."""


@contextlib.contextmanager
def thin() -> Iterator[str]:
    """A thin volume, whose blocks are allocated as it is written to."""
    with parts(2) as (meta, data), mapped("pool", DISK_MIB, f"thin-pool {meta} {data} 128 0") as pool:
        run("dmsetup", "message", "pool", "0", "create_thin 0")
        with mapped("thin", DISK_MIB, f"thin {pool} 0") as node:
            yield node


STACKS["dm-thin"] = thin


@contextlib.contextmanager
def target(kind: str, device: str) -> Iterator[int]:
    """What is written to: the bare device, or a file on a fresh file system of this kind."""
    if kind == "bare":
        with opened(device, os.O_RDWR) as fd:
            yield fd
    else:
        with file_system(kind, device) as root, opened(root / "file") as fd:
            yield fd


# A slow drive that keeps its flusher busy for long.

SPEED = 32 * MIB
"""Bytes a second."""
REQUEST = 256 * KIB
SLOW_MIB = 1024
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
        SLOW_MIB, SECTOR, irqmode=TIMER, completion_nsec=nanoseconds, poll_queues=0, submit_queues=1, hw_queue_depth=1,
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
