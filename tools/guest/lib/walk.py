# SPDX-License-Identifier: GPL-2.0
"""Helpers for the tests of the buffer-head walk: places to write to, models of their bytes, and faults.

A store is a file on ext4 or a block device. Its model makes every write both in the store and in memory. So
a test can compare all bytes, in the page cache and on the device.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import random
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from lib import ktap
from lib.dontcache import KIB, MIB, MOUNT, NVME, PAGE, cached_pages, call, punch_hole, run, setting

SECTOR = 512
SEED = 73
NOISE = random.Random(SEED).randbytes(2 * MIB)
STALE = b"\xaa" * MIB
"""What the drive holds before a file system is made: whoever reads it has read a stale block."""

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
NULL_BLK = Path("/sys/kernel/config/nullb")

BLKBSZSET = 0x40081271
FIBMAP = 1
PRESENT, PFN = 1 << 63, (1 << 55) - 1
COMPOUND_HEAD, COMPOUND_TAIL = 1 << 15, 1 << 16
PROT_NONE = 0


def fill_stale(device: str, mib: int) -> None:
    """Makes the start of the device recognisable."""
    with open(device, "wb", buffering=0) as file:
        for _ in range(mib):
            file.write(STALE)
        os.fsync(file)


class NullBlock:
    """A block device in memory, of which sectors can be made to fail."""

    def __init__(self, mib: int, block: int, **settings: int) -> None:
        self._settings = {"size": mib, "blocksize": block, "memory_backed": 1, **settings}
        self._config = NULL_BLK / "walk"
        self.device = "/dev/walk"

    def __enter__(self) -> NullBlock:
        self._config.mkdir()
        for name, value in self._settings.items():
            (self._config / name).write_text(str(value))
        (self._config / "power").write_text("1")
        return self

    def __exit__(self, *_: object) -> None:
        (self._config / "power").write_text("0")
        self._config.rmdir()

    @contextlib.contextmanager
    def failing(self, first: int, last: int) -> Iterator[None]:
        """Reads and writes of these sectors fail."""
        (self._config / "badblocks").write_text(f"+{first}-{last}")
        try:
            yield
        finally:
            (self._config / "badblocks").write_text(f"-{first}-{last}")


class Store:
    """What is written to: a file on a fresh ext4 with this mount option, or a block device where there is no option.

    Its blocks have this size. It is on the test drive, or on a disk that can be made to fail.
    """

    def __init__(self, block: int, option: str, disk: NullBlock | None) -> None:
        self.block, self.option, self.disk = block, option, disk
        self.device, self.mib = disk.device if disk else NVME, 48
        # data=journal keeps to small folios, as all of PREEMPT_RT does.
        self.large = option != "data=journal" and THP.exists()

    def __enter__(self) -> Self:
        if self.option:
            # A discard would take the stale blocks away.
            options = ["-b", self.block, "-N", 64, "-m", 0, "-J", f"size={2 * self.block // KIB}", "-E", "nodiscard"]
            run("mkfs.ext4", "-q", "-F", *options, self.device, f"{self.mib}M")
            MOUNT.mkdir(exist_ok=True)
            self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        if self.option:
            run("umount", MOUNT)

    def _mount(self) -> None:
        run("mount", "-t", "ext4", "-o", self.option, self.device, MOUNT)

    def open(self) -> int:
        if self.option:
            return os.open(MOUNT / "file", os.O_RDWR | os.O_CREAT, 0o600)
        fd = os.open(self.device, os.O_RDWR)
        fcntl.ioctl(fd, BLKBSZSET, struct.pack("N", self.block))
        return fd

    def forget(self) -> None:
        """Forgets what is cached of the file, which is closed. The last close of a device has forgotten all."""
        if self.option:
            run("umount", MOUNT)
            self._mount()

    def failing(self, fd: int, offset: int) -> contextlib.AbstractContextManager[None]:
        """Reads and writes of the block at this offset fail."""
        assert self.disk, "the test drive does not fail"
        return self.disk.failing(*sectors(fd, offset))


class Model:
    """The bytes that a store has to hold."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.random = random.Random(SEED)
        self.content = bytearray()
        self.fd = -1

    def __enter__(self) -> Model:
        self.fd = self.store.open()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    @property
    def size(self) -> int:
        return len(self.content)

    def noise(self, length: int) -> bytes:
        """Data not to be confused with other data."""
        start = self.random.randrange(len(NOISE) - length)
        return NOISE[start : start + length]

    def took(self, offset: int, data: bytes) -> None:
        """The store took the data."""
        if data:
            self.content.extend(bytes(max(0, offset - self.size)))
            self.content[offset : offset + len(data)] = data

    def attempt(self, offset: int, length: int) -> tuple[int, int]:
        """A write that may fail, of data that is in two places: how much was written, and the error."""
        data, cut = self.noise(length), self.random.randrange(length + 1)
        try:
            written, error = os.pwritev(self.fd, [data[:cut], data[cut:]], offset), 0
        except OSError as failure:
            written, error = 0, failure.errno or 0
        self.took(offset, data[:written])
        return written, error

    def write(self, offset: int, length: int) -> None:
        """A write, whole."""
        written, error = self.attempt(offset, length)
        assert written == length, f"wrote {written} of {length} bytes at {offset}, errno {error}"

    def short_write(self, offset: int, length: int, missing: int) -> None:
        """A write whose last bytes cannot be read: what comes before them is written."""
        data = self.noise(length)
        readable, lost = -(-length // PAGE) * PAGE, -(-missing // PAGE) * PAGE
        with mmap.mmap(-1, readable + lost) as source:
            source[readable - length : readable] = data
            address = address_of(source)
            call("mprotect", address + readable, lost, PROT_NONE)
            try:
                written = call("pwrite", self.fd, address + readable - length, length + missing, offset)
            except OSError as error:
                assert error.errno == errno.EFAULT and not length, error
                return
        assert written == length > 0, f"{written} of {length} bytes at {offset}"
        self.took(offset, data)

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)
        self.content = self.content[:size].ljust(size, b"\0")

    def punch(self, offset: int, length: int) -> None:
        """Makes a hole, which does not change the size."""
        punch_hole(self.fd, offset, length)
        end = min(offset + length, self.size)
        self.content[offset:end] = bytes(max(0, end - offset))

    def fill(self, size: int) -> None:
        """Writes all of it, in writes that are large enough for large folios."""
        for offset in range(0, size, MIB):
            self.write(offset, min(MIB, size - offset))
        os.fsync(self.fd)

    def scatter(self, writes: int, longest: int = 100 * KIB) -> None:
        """Writes of many lengths, often about a boundary of blocks or folios, fsync now and then.

        The source of every fourth cannot be read to its end.
        """
        for _ in range(writes):
            limit = self.random.choice((1, 100, self.store.block + 1, longest))
            length = self.random.randint(1, limit)
            grain = self.random.choice((1, self.store.block, PAGE, 64 * KIB, self.size))
            offset = self.random.randrange(self.size + 1) // grain * grain
            offset += self.random.choice((0, 0, 1, -1, -length, -length // 2))
            offset = min(max(0, offset), self.size - length)
            if self.random.random() < 0.25:
                self.short_write(offset, length, self.random.choice((1, self.store.block, 3 * self.store.block, 64 * KIB)))
            else:
                self.write(offset, length)
            if self.random.random() < 0.3:
                os.fsync(self.fd)

    def read(self) -> bytes:
        """All bytes that the store has."""
        size = os.lseek(self.fd, 0, os.SEEK_END)
        return b"".join(os.pread(self.fd, min(MIB, size - offset), offset) for offset in range(0, size, MIB))

    def check(self, when: str) -> None:
        """Reads all bytes, by way of the page cache, and compares them."""
        got, expected = self.read(), self.content
        if got == expected:
            return
        assert len(got) == len(expected), f"{len(got)} bytes, not {len(expected)}, {when}"
        wrong = [at for at, (one, other) in enumerate(zip(got, expected, strict=True)) if one != other]
        raise AssertionError(
            f"{len(wrong)} bytes from {wrong[0]} to {wrong[-1]} are wrong {when}: "
            f"{got[wrong[0] :][:16].hex()}, not {expected[wrong[0] :][:16].hex()}"
        )

    def reopen(self) -> None:
        """Whatever is read afterwards comes from the device."""
        os.close(self.fd)
        self.store.forget()
        self.fd = self.store.open()
        assert cached_pages(self.fd) == 0, "pages are cached still"

    def verify(self) -> None:
        """Every byte is right in the page cache and on the device; all is cached again afterwards."""
        self.check("in the page cache")
        os.fsync(self.fd)
        self.reopen()
        self.check("on the device")

    def need_large_folio(self, offset: int) -> None:
        """Without one the case would not try what it is there for."""
        _, pages = folio_frames(self.fd, offset)
        assert pages > 1 and pages * PAGE >= 16 * KIB or not self.store.large, f"the folio at {offset} has {pages} pages"


def address_of(mapping: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(mapping))


def folio_frames(fd: int, offset: int) -> tuple[int, int]:
    """The first page frame and the pages of the cached folio that holds this offset."""
    whole, at = 2 * MIB, offset // PAGE * PAGE
    with mmap.mmap(fd, whole, offset=at // whole * whole) as mapping, open("/proc/self/pagemap", "rb") as pagemap:
        mapping[at % whole]  # maps the page
        pagemap.seek((address_of(mapping) + at % whole) // PAGE * 8)
        (entry,) = struct.unpack("=Q", pagemap.read(8))
    assert entry & PRESENT, f"the page at {offset} is not mapped"
    frame: int = entry & PFN
    with open("/proc/kpageflags", "rb", buffering=0) as kpageflags:

        def flags(number: int) -> int:
            kpageflags.seek(number * 8)
            return int.from_bytes(kpageflags.read(8), "little")

        if not flags(frame) & (COMPOUND_HEAD | COMPOUND_TAIL):
            return frame, 1
        while flags(frame) & COMPOUND_TAIL:
            frame -= 1
        end = frame + 1
        while flags(end) & COMPOUND_TAIL:
            end += 1
        return frame, end - frame


def sectors(fd: int, offset: int) -> tuple[int, int]:
    """The first and the last sector of the block at this offset, or a sector of a device."""
    if stat.S_ISBLK(os.fstat(fd).st_mode):
        return offset // SECTOR, offset // SECTOR
    size = os.fstatvfs(fd).f_bsize
    (block,) = struct.unpack("i", fcntl.ioctl(fd, FIBMAP, struct.pack("i", offset // size)))
    assert block, f"no block at {offset}"
    return block * size // SECTOR, (block + 1) * size // SECTOR - 1


Case = tuple[str, Callable[[], None]]
BLOCKS = (4 * KIB, KIB)
OPTIONS = ("delalloc", "nodelalloc", "data=journal")


def on_ext4(*functions: Callable[[Store], None], options: Sequence[str] = OPTIONS, fails: bool = False) -> list[Case]:
    """The functions with each kind of ext4: on the test drive, or on a device that can be made to fail."""

    def on(function: Callable[[Store], None], block: int, option: str) -> None:
        with contextlib.ExitStack() as stack:
            disk = stack.enter_context(NullBlock(48, SECTOR)) if fails else None
            if disk:
                fill_stale(disk.device, 48)
            function(Store(block, option, disk))

    return [
        (f"ext4_{block // KIB}k_{option.removeprefix('data=')}_{function.__name__}", partial(on, function, block, option))
        for block in BLOCKS
        for option in options
        for function in functions
    ]


def on_drives(mib: int, *functions: Callable[[Store], None]) -> list[Case]:
    """The functions with a block device of each block size, which can be made to fail."""

    def on(function: Callable[[Store], None], block: int) -> None:
        with NullBlock(mib, block) as disk:
            function(Store(block, "", disk))

    return [(f"drive_{block}_{each.__name__}", partial(on, each, block)) for block in (4096, 512) for each in functions]


def main(suite: str, cases: Sequence[Case]) -> None:
    """Runs the cases with huge pages wherever the kernel likes, on a drive full of stale data."""
    with setting(THP, "always") if THP.exists() else contextlib.nullcontext():
        fill_stale(NVME, 48)
        ktap.main(suite, cases)
