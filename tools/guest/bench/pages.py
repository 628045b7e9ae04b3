# SPDX-License-Identifier: GPL-2.0
"""How many pages of a file the page cache holds, by cachestat(2)."""

import ctypes
import os
from collections.abc import Iterable

from .kernel import Refused

SYS_CACHESTAT = 451


class Range(ctypes.Structure):
    """struct cachestat_range."""

    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class Cachestat(ctypes.Structure):
    """struct cachestat."""

    _fields_ = [
        (name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted")
    ]


LIBC = ctypes.CDLL(None, use_errno=True)


def cached_pages(files: Iterable[str]) -> dict[str, int]:
    """The pages in the cache by the file's name."""
    by_file: dict[str, int] = {}
    for path in files:
        whole, found = Range(0, 0), Cachestat()
        with open(path, "rb") as file:
            if LIBC.syscall(SYS_CACHESTAT, file.fileno(), ctypes.byref(whole), ctypes.byref(found), 0):
                raise Refused(f"cachestat failed: {os.strerror(ctypes.get_errno())}")
        by_file[os.path.basename(path)] = found.cache
    return by_file


def forget(files: Iterable[str]) -> None:
    """Take clean pages of these files out of the cache.

    drop_caches would take fio itself out of the cache as well.
    """
    for path in files:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
