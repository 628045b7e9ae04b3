#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""aio (io_submit): a queue of buffered and O_DIRECT writes on files and on a device."""

from __future__ import annotations

import ctypes
import mmap
import os

from devices import null_timer, target
from dontcache import NVME, PAGE, RWF_DONTCACHE, pattern
from row import Verdict, main
from walk import address_of

SYS_IO_SETUP, SYS_IO_DESTROY, SYS_IO_GETEVENTS, SYS_IO_SUBMIT = 206, 207, 208, 209
IOCB_CMD_PWRITE = 1
DEPTH = 32

_libc = ctypes.CDLL(None, use_errno=True)


class _Iocb(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("rw_flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16), ("reqprio", ctypes.c_int16), ("fd", ctypes.c_uint32),
        ("buf", ctypes.c_uint64), ("nbytes", ctypes.c_uint64), ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("resfd", ctypes.c_uint32),
    ]  # fmt: skip


class _Event(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("obj", ctypes.c_uint64), ("res", ctypes.c_int64), ("res2", ctypes.c_int64)]


def call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return result


def submit(fd: int) -> list[int]:
    """A queue of writes of a page each; returns how many bytes each took."""
    pages = mmap.mmap(-1, DEPTH * PAGE)
    pages.write(pattern(0, DEPTH * PAGE))
    context = ctypes.c_ulong()
    call(SYS_IO_SETUP, DEPTH, ctypes.byref(context))
    requests = [
        _Iocb(
            rw_flags=RWF_DONTCACHE, opcode=IOCB_CMD_PWRITE, fd=fd, buf=address_of(pages) + offset, nbytes=PAGE,
            offset=offset,
        )
        for offset in range(0, DEPTH * PAGE, PAGE)
    ]  # fmt: skip
    pointers = (ctypes.POINTER(_Iocb) * DEPTH)(*map(ctypes.pointer, requests))
    events = (_Event * DEPTH)()
    assert call(SYS_IO_SUBMIT, context, DEPTH, pointers) == DEPTH
    assert call(SYS_IO_GETEVENTS, context, DEPTH, DEPTH, events, None) == DEPTH
    call(SYS_IO_DESTROY, context)
    return [event.res for event in events]


def aio() -> Verdict:
    wrong, writes = [], 0
    with null_timer() as node:
        for kind, device in (("bare", node), ("ext4", NVME), ("xfs", NVME)):
            for flags in (0, os.O_DIRECT):
                with target(kind, device) as fd:
                    os.pwrite(fd, bytes(PAGE), 0)
                    os.fsync(fd)
                    file = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | flags)
                    took = submit(file)
                    os.close(file)
                    if took != [PAGE] * DEPTH or os.pread(fd, DEPTH * PAGE, 0) != pattern(0, DEPTH * PAGE):
                        wrong.append(f"{kind} took {took}")
                    writes += len(took)
    return Verdict(not wrong, "; ".join(wrong) or f"{writes} writes, all in their place")


if __name__ == "__main__":
    main(aio)
