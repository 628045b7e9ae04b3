# SPDX-License-Identifier: GPL-2.0
"""Lists the ways to write a page with DONTCACHE: each interface, with all combinations of open and write flags.

The interfaces are pwritev2, aio and io_uring. The documentation says which ways a kernel accepts: pwritev2(2), open(2),
io_uring_enter(2), and the source of those that refuse one. `documented()` has all of it. A write that is refused and
should not be, or the reverse, is as wrong as data that cannot be read back.
"""

import contextlib
import ctypes
import errno
import itertools
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import or_

from lib.dontcache import PAGE, RWF_DONTCACHE, call, is_there, opened, pattern
from lib.row import tried
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

OPEN = {"O_DIRECT": os.O_DIRECT, "O_SYNC": os.O_SYNC, "O_DSYNC": os.O_DSYNC, "O_APPEND": os.O_APPEND}
RWF = {"NOWAIT": os.RWF_NOWAIT, "APPEND": os.RWF_APPEND, "SYNC": os.RWF_SYNC, "HIPRI": os.RWF_HIPRI}
TAKEN = 0
"""No error."""
MOST = 8
"""How much of what is wrong is told."""


def _word(error: int) -> str:
    # It has another name of the same number.
    return "EOPNOTSUPP" if error == errno.EOPNOTSUPP else errno.errorcode[error] if error else "taken"


def combinations(names: Mapping[str, int]) -> Iterator[frozenset[str]]:
    """Every set of the names."""
    for count in range(len(names) + 1):
        yield from map(frozenset, itertools.combinations(names, count))


def documented(kind: str, interface: str, flags: frozenset[str]) -> set[int]:
    """What may become of a write with these flags on such a target: an error or TAKEN, of which there may be several."""
    direct, nowait, appends = "O_DIRECT" in flags, "NOWAIT" in flags, bool(flags & {"O_APPEND", "APPEND"})
    if kind == "nfs" and flags >= {"O_DIRECT", "O_APPEND"}:
        return {errno.EINVAL}  # is not opened: no append is atomic there
    if kind == "nfs" and nowait:
        return {errno.EOPNOTSUPP}  # only what is read need not wait
    if interface == "io_uring" and "HIPRI" in flags:
        return {errno.EINVAL}  # takes a ring that is polled
    if kind == "bare" and appends:
        return {errno.ENOSPC}  # a device has its size
    if not nowait:
        return {TAKEN}
    if not direct and kind in ("bare", "ext4"):
        # Does not know how to write to the cache and not wait; who submits does, and would wait.
        return {errno.EAGAIN if interface == "io_uring" else errno.EOPNOTSUPP}
    if kind == "ext4" and appends:
        return {errno.EAGAIN}  # waits for the drive
    if kind == "ext4" or appends:
        return {TAKEN, errno.EAGAIN}  # waits where ext4 has a time to note, and there have to be blocks
    if not direct:
        return {TAKEN, errno.EAGAIN}  # waits where the page of the write before is being written or dropped
    return {TAKEN}


def write_each_way(
    fd: int, kind: str, always: frozenset[str] = frozenset(), never: frozenset[str] = frozenset()
) -> list[str]:
    """What is wrong with a page in each way whose flags have all of these and none of those, which is read back.

    Each interface has to write some, unless something is wrong.
    """
    taken, wrong = set(), []
    # What is cached ahead of a direct write is dropped by it, which one that must not wait does not do.
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    page = mmap.mmap(-1, PAGE)
    ways = itertools.product(INTERFACES.items(), combinations(OPEN), combinations(RWF))
    for number, ((interface, write), to_open, to_write) in enumerate(ways):
        flags = to_open | to_write
        if always - flags or never & flags:
            continue
        name = f"{interface} {'|'.join(sorted(flags)) or 'no flag'}"
        page[:] = pattern(number * PAGE, PAGE)
        at = os.lseek(fd, 0, os.SEEK_END) if flags & {"O_APPEND", "APPEND"} else number * PAGE
        took, error = 0, TAKEN
        try:
            with opened(f"/proc/self/fd/{fd}", reduce(or_, (OPEN[name] for name in to_open), os.O_RDWR)) as file:
                took = write(file, page, at, reduce(or_, (RWF[name] for name in to_write), 0))
        except OSError as failure:
            error = failure.errno or errno.EIO
        may = documented(kind, interface, flags)
        if error not in may:
            wrong.append(f"{name} is {_word(error)}, not {' or '.join(map(_word, sorted(may)))}")
        elif error == TAKEN:
            taken.add(interface)
            if took != PAGE or not is_there(fd, at, page):
                wrong.append(f"{name} took {took} bytes")
    tried(wrong or taken == INTERFACES.keys(), f"each interface: only {', '.join(taken)}")
    return wrong[:MOST]
