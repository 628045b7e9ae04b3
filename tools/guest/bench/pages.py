# SPDX-License-Identifier: GPL-2.0
"""How many pages of a file the page cache holds, by cachestat(2)."""

import ctypes
import os
from collections.abc import Iterable

from .kernel import Refused

SYS_CACHESTAT = 451


LIBC = ctypes.CDLL(None, use_errno=True)


def cached_pages(files: Iterable[str]) -> dict[str, int]:
    """The pages in the cache by the file's name."""
    by_file: dict[str, int] = {}
    for path in files:
        # struct cachestat_range and struct cachestat, whose first member is the pages in the cache.
        whole, found = (ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 5)()
        with open(path, "rb") as file:
            if LIBC.syscall(SYS_CACHESTAT, file.fileno(), ctypes.byref(whole), ctypes.byref(found), 0):
                raise Refused(f"cachestat failed: {os.strerror(ctypes.get_errno())}")
        by_file[os.path.basename(path)] = found[0]
    return by_file


def forget(files: Iterable[str]) -> None:
    """Take clean pages of these files out of the cache.

    drop_caches would take fio itself out of the cache as well.
    """
    for path in files:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
