# SPDX-License-Identifier: GPL-2.0
"""Functions of the C library that Python does not have."""

import ctypes

_libc = ctypes.CDLL(None, use_errno=True)

SYNC_FILE_RANGE_WRITE, SYNC_FILE_RANGE_WAIT_AFTER = 2, 4
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2


def call(function: str, *arguments: object) -> int:
    """Calls a function, whose numbers may have 64 bits; an OSError if it fails."""
    wide = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    result: int = _libc[function](*wide)
    if result == -1:
        raise OSError(ctypes.get_errno(), function)
    return result


def start_writeback(fd: int, offset: int, length: int, wait: bool = False) -> None:
    """Starts the writeback of a range, and may wait for its end. The flusher has no part in it."""
    call("sync_file_range", fd, offset, length, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER * wait)


def punch_hole(fd: int, offset: int, length: int) -> None:
    """Makes a hole, which does not change the size. It does not let the flusher run as a program would."""
    call("fallocate", fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, offset, length)


def syncfs(fd: int) -> None:
    """Writes all that is dirty of the file's file system."""
    call("syncfs", fd)
