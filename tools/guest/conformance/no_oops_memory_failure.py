# SPDX-License-Identifier: GPL-2.0
"""A page fails while it is dirty, under writeback, or waiting to be dropped: the writer hears of lost data, and no more is lost"""

import errno
import os
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lib.devices import DISK_MIB, mapped, suspended
from lib.dontcache import KIB, MIB, NVME, PAGE, cachestat, file_system, forget, forked, held, opened, pattern, start_writeback
from lib.dontcache import sync, trace, until, waited, write_dontcache
from lib.row import NOTHING, PATIENCE, Verdict, main, of_each, quiet_counter, tried

INJECT = Path("/sys/kernel/debug/hwpoison/corrupt-pfn")
ADDED = "filemap/mm_filemap_add_to_page_cache"


def fail(pfn: str) -> None:
    """The page with this number fails. The kernel may be unable to take it away."""
    with opened(INJECT, os.O_WRONLY) as fd:
        try:
            os.write(fd, pfn.encode())
        except OSError as error:
            assert error.errno == errno.EBUSY, error


def first_page(path: Path, write: Callable[[], None]) -> str:
    """The number of the page that the write adds at the beginning of the file."""
    inode = f"{path.stat().st_ino:x}"
    with trace(ADDED) as lines:
        write()
        found = [line for line in lines() if re.search(rf"ino {inode} pfn=0x\w+ ofs=0 ", line)]
    tried(found, "a page that is added at the beginning of the file")
    return str(re.findall(r"pfn=(0x\w+)", found[-1])[0])


def dirty(fd: int, path: Path, node: str) -> int:
    with held():
        fail(first_page(path, lambda: write_dontcache(fd, 0, pattern(0, PAGE))))
        return sync(fd)


def under_writeback(fd: int, path: Path, node: str) -> int:
    with held():
        pfn = first_page(path, lambda: write_dontcache(fd, 0, pattern(0, PAGE)))
        with suspended(node):
            writer = forked(partial(start_writeback, fd, 0, PAGE))
            tried(waited(lambda: cachestat(fd).writeback > 0, PATIENCE) is not None, "a page under writeback")
            failing = forked(partial(fail, pfn))
            # Until it waits for the end of the writeback, which nothing shows.
            time.sleep(0.2)
        for child in (writer, failing):
            os.waitpid(child, 0)
        return sync(fd)


def waiting(fd: int, path: Path, node: str) -> int:
    """A write to a part of a page, which waits for another one."""
    write_dontcache(fd, 0, pattern(0, PAGE))
    os.fsync(fd)
    forget(fd)
    pfn = first_page(path, lambda: write_dontcache(fd, 8, pattern(8, 64)))
    os.fsync(fd)
    fail(pfn)
    return sync(fd)


def memory_failure() -> Verdict:
    """Each state, on each file system. Only what was dirty is lost."""
    wrong = {}
    for kind in ("ext4", "xfs"):
        with mapped("failing", DISK_MIB, f"linear {NVME} 0") as node, file_system(kind, node) as root:
            for state in (dirty, under_writeback, waiting):
                path = root / state.__name__
                with opened(path) as fd:
                    error = state(fd, path, node)
                    lost = errno.EIO if state is dirty else 0
                    said = "" if error in (0, lost) and (error or state is not dirty) else f"fsync says {error}"
                    write_dontcache(fd, 0, pattern(MIB, 64 * KIB))
                    os.fsync(fd)
                    until(lambda: quiet_counter(node) == NOTHING, 5, f"the counter is {quiet_counter(node)}")
                    forget(fd)
                    if os.pread(fd, 64 * KIB, 0) != pattern(MIB, 64 * KIB):
                        said += " the next write is lost"
                    wrong[f"{kind}, a page fails: {state.__name__.replace('_', ' ')}"] = said
    return of_each(wrong)


main(memory_failure, stacks=True)
