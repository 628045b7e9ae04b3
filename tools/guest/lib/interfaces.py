# SPDX-License-Identifier: GPL-2.0
"""The interfaces by which pages are written with DONTCACHE: pwritev2, aio and io_uring."""

import contextlib
import ctypes
import functools
import mmap
import os
from collections.abc import Callable

from lib.dontcache import PAGE, RWF_DONTCACHE
from lib.libc import call
from lib.walk import address_of

Write = Callable[[int, mmap.mmap, int, int], int]
"""Writes pages with DONTCACHE and these RWF flags at an offset; the bytes taken, or an OSError."""

AIO = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
"""The numbers of aio's system calls."""
SYS_IO_SETUP, SYS_IO_DESTROY, SYS_IO_GETEVENTS, SYS_IO_SUBMIT = AIO[os.uname().machine]
IOCB_CMD_PWRITE = 1

RING = 1024
"""More bytes than a struct io_uring has."""


class _Iocb(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("rw_flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16), ("reqprio", ctypes.c_int16), ("fd", ctypes.c_uint32),
        ("buf", ctypes.c_uint64), ("nbytes", ctypes.c_uint64), ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("resfd", ctypes.c_uint32),
    ]  # fmt: skip


class _Event(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("obj", ctypes.c_uint64), ("res", ctypes.c_int64), ("res2", ctypes.c_int64)]


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Cqe(ctypes.Structure):
    _fields_ = [("user_data", ctypes.c_uint64), ("res", ctypes.c_int32), ("flags", ctypes.c_uint32)]


def queue_aio(fd: int, pages: mmap.mmap, offset: int, flags: int = 0) -> list[int]:
    """Has all of the pages written at once, each by a request of its own; what became of each, or -errno."""
    depth = len(pages) // PAGE
    context = ctypes.c_ulong()
    call("syscall", SYS_IO_SETUP, depth, ctypes.byref(context))
    try:
        requests = [
            _Iocb(
                data=place, rw_flags=RWF_DONTCACHE | flags, opcode=IOCB_CMD_PWRITE, fd=fd,
                buf=address_of(pages) + place, nbytes=PAGE, offset=offset + place,
            )
            for place in range(0, len(pages), PAGE)
        ]  # fmt: skip
        pointers = (ctypes.POINTER(_Iocb) * depth)(*map(ctypes.pointer, requests))
        events = (_Event * depth)()
        assert call("syscall", SYS_IO_SUBMIT, context, depth, pointers) == depth
        done = 0
        while done < depth:
            # What is left to be done of an io_uring interrupts the task.
            with contextlib.suppress(InterruptedError):
                place = ctypes.byref(events, done * ctypes.sizeof(_Event))
                done += call("syscall", SYS_IO_GETEVENTS, context, 1, depth - done, place, None)
    finally:
        call("syscall", SYS_IO_DESTROY, context)
    return [event.res for event in sorted(events, key=lambda event: event.data)]


def _took(result: int) -> int:
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def by_pwritev2(fd: int, page: mmap.mmap, offset: int, flags: int = 0) -> int:
    return os.pwritev(fd, [page], offset, RWF_DONTCACHE | flags)


def by_aio(fd: int, page: mmap.mmap, offset: int, flags: int = 0) -> int:
    return sum(map(_took, queue_aio(fd, page, offset, flags)))


@functools.cache
def _liburing() -> ctypes.CDLL:
    """The liburing that has its inline functions as symbols."""
    library = ctypes.CDLL("liburing-ffi.so.2")
    library.io_uring_get_sqe.restype = ctypes.c_void_p
    pointer, number = ctypes.c_void_p, ctypes.c_int
    for prepare in (library.io_uring_prep_readv2, library.io_uring_prep_writev2):
        prepare.argtypes = [pointer, number, pointer, ctypes.c_uint, ctypes.c_uint64, number]
        prepare.restype = None
    return library


def by_io_uring(fd: int, page: mmap.mmap, offset: int, flags: int = 0) -> int:
    return _by_io_uring(_liburing().io_uring_prep_writev2, fd, page, offset, flags)


def read_by_io_uring(fd: int, page: mmap.mmap, offset: int, flags: int = 0) -> int:
    """Reads with DONTCACHE."""
    return _by_io_uring(_liburing().io_uring_prep_readv2, fd, page, offset, flags)


def _by_io_uring(prepare: Callable[..., None], fd: int, page: mmap.mmap, offset: int, flags: int) -> int:
    uring, ring, done = _liburing(), ctypes.create_string_buffer(RING), ctypes.POINTER(_Cqe)()
    data = _Iovec(address_of(page), len(page))
    _took(uring.io_uring_queue_init(1, ring, 0))
    try:
        request = uring.io_uring_get_sqe(ring)
        prepare(request, fd, ctypes.byref(data), 1, offset, RWF_DONTCACHE | flags)
        _took(uring.io_uring_submit_and_wait(ring, 1))
        _took(uring.io_uring_wait_cqe(ring, ctypes.byref(done)))
        return _took(done.contents.res)
    finally:
        uring.io_uring_queue_exit(ring)


INTERFACES: dict[str, Write] = {"pwritev2": by_pwritev2, "aio": by_aio, "io_uring": by_io_uring}

WAYS = [(write, opening) for write in INTERFACES.values() for opening in (0, os.O_DIRECT, os.O_SYNC)]
"""Each interface with what a file may be opened with, for writers beside each other."""
