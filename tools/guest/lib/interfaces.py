# SPDX-License-Identifier: GPL-2.0
"""The interfaces by which pages are written with DONTCACHE: pwritev2, aio and io_uring."""

import contextlib
import ctypes
import mmap
import os
import struct
from collections.abc import Callable

from lib.dontcache import PAGE, RWF_DONTCACHE, call
from lib.walk import address_of

Write = Callable[[int, mmap.mmap, int, int], int]
"""Writes pages with DONTCACHE and these RWF flags at an offset; the bytes taken, or an OSError."""

AIO = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
"""The numbers of aio's system calls."""
SYS_IO_SETUP, SYS_IO_DESTROY, SYS_IO_GETEVENTS, SYS_IO_SUBMIT = AIO[os.uname().machine]
IOCB_CMD_PWRITE = 1
IOCB = struct.Struct("=QIiHhIQQq16x")
"""struct iocb: data, key, rw_flags, opcode, priority, fd, address, length, offset."""
EVENT = struct.Struct("=QQqq")
"""struct io_event: data, iocb, result, second result."""

SQE = struct.Struct("=BBHiQQIi32x")
"""struct io_uring_sqe: opcode, flags, priority, fd, offset, address, length, rw_flags."""
IORING_OP_READ, IORING_OP_WRITE = 22, 23
RESULT = 8
"""Where the result is in a struct io_uring_cqe."""
RING = 1024
"""More bytes than a struct io_uring has."""


def queue_aio(fd: int, pages: mmap.mmap, offset: int, flags: int = 0) -> list[int]:
    """Has all of the pages written at once, each by a request of its own; what became of each, or -errno."""
    depth = len(pages) // PAGE
    context, memory = ctypes.c_ulong(), address_of(pages)
    call("syscall", SYS_IO_SETUP, depth, ctypes.byref(context))
    try:
        requests = ctypes.create_string_buffer(depth * IOCB.size)
        for nr, place in enumerate(range(0, len(pages), PAGE)):
            request = (place, 0, RWF_DONTCACHE | flags, IOCB_CMD_PWRITE, 0, fd, memory + place, PAGE, offset + place)
            IOCB.pack_into(requests, nr * IOCB.size, *request)
        first = ctypes.addressof(requests)
        pointers = (ctypes.c_void_p * depth)(*range(first, first + len(requests) - 1, IOCB.size))
        events = ctypes.create_string_buffer(depth * EVENT.size)
        assert call("syscall", SYS_IO_SUBMIT, context, depth, pointers) == depth
        done = 0
        while done < depth:
            # What is left to be done of an io_uring interrupts the task.
            with contextlib.suppress(InterruptedError):
                free = ctypes.byref(events, done * EVENT.size)
                done += call("syscall", SYS_IO_GETEVENTS, context, 1, depth - done, free, None)
    finally:
        call("syscall", SYS_IO_DESTROY, context)
    return [result for _, _, result, _ in sorted(EVENT.iter_unpack(events.raw))]


def _took(result: int) -> int:
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def by_pwritev2(fd: int, page: mmap.mmap, offset: int, flags: int = 0) -> int:
    return os.pwritev(fd, [page], offset, RWF_DONTCACHE | flags)


def by_aio(fd: int, page: mmap.mmap, offset: int, flags: int = 0) -> int:
    return sum(map(_took, queue_aio(fd, page, offset, flags)))


def by_io_uring(fd: int, page: mmap.mmap, offset: int, flags: int = 0, opcode: int = IORING_OP_WRITE) -> int:
    """Writes, or reads, by one request of a ring of its own."""
    # The liburing that has its inline functions as symbols.
    uring = ctypes.CDLL("liburing-ffi.so.2")
    uring.io_uring_get_sqe.restype = ctypes.c_void_p
    ring, done = ctypes.create_string_buffer(RING), ctypes.c_void_p()
    _took(uring.io_uring_queue_init(1, ring, 0))
    try:
        request = SQE.pack(opcode, 0, 0, fd, offset, address_of(page), len(page), RWF_DONTCACHE | flags)
        ctypes.memmove(uring.io_uring_get_sqe(ring), request, SQE.size)
        _took(uring.io_uring_submit_and_wait(ring, 1))
        _took(uring.io_uring_wait_cqe(ring, ctypes.byref(done)))
        return _took(ctypes.c_int32.from_address((done.value or 0) + RESULT).value)
    finally:
        uring.io_uring_queue_exit(ring)


INTERFACES: dict[str, Write] = {"pwritev2": by_pwritev2, "aio": by_aio, "io_uring": by_io_uring}

WAYS = [(write, opening) for write in INTERFACES.values() for opening in (0, os.O_DIRECT, os.O_SYNC)]
"""Each interface with what a file may be opened with, for writers beside each other."""
