# SPDX-License-Identifier: GPL-2.0
"""A long syncfs() of many files on a slow drive, beside a page of one of them, of a new file, and of another partition.

What the sync is for is written when it is over, though somebody writes with DONTCACHE all the time.
"""

import contextlib
import os
from pathlib import Path

from lib.devices import partition, slow_drive
from lib.dontcache import ENOUGH, MIB, PAGE, beside, cachestat, counter, file_system, left_of, meanwhile, never_many
from lib.dontcache import never_periodic, opened, run, syncfs, waited, write_dontcache
from lib.row import BOUND, PATIENCE, Verdict, main, told_wait, tried

FILES = 80
SIZE = 4 * MIB
"""The flusher is not interrupted within a file."""
PART = 768 * MIB


def sync(root: Path) -> None:
    with opened(root, os.O_RDONLY) as fd:
        syncfs(fd)


def write_often(path: Path) -> None:
    """Without a rest, in two files, until there is enough of it."""
    data = os.urandom(MIB)
    with opened(path.with_suffix(".1")) as one, opened(path.with_suffix(".2")) as two:
        while not ENOUGH.exists():
            for offset in range(0, 8 * MIB, MIB):
                write_dontcache(one, offset, data)
                write_dontcache(two, offset, data)


def one_sync() -> Verdict:
    with contextlib.ExitStack() as stack:
        disk = stack.enter_context(slow_drive())
        root = stack.enter_context(file_system("xfs", stack.enter_context(partition(disk.device, 1, 0, PART))))
        device = stack.enter_context(partition(disk.device, 2, PART, MIB))
        stack.enter_context(never_periodic())
        stack.enter_context(never_many())
        # A write that only changes the time of the file is not to wait for the log.
        run("mount", "-o", "remount,lazytime", root)
        page = stack.enter_context(opened(root / "page"))
        other = stack.enter_context(opened(device, os.O_RDWR))
        write_dontcache(page, 0, bytes(PAGE))
        os.fsync(page)
        files = [stack.enter_context(opened(root / f"{number}")) for number in range(FILES)]
        for fd in files:
            os.pwrite(fd, bytes(SIZE), 0)
        with contextlib.ExitStack() as writing:
            with beside(lambda: sync(root)):
                started = waited(lambda: any(cachestat(fd).writeback for fd in files), PATIENCE)
                before = sum(left_of(fd) for fd in files)
                for fd, place in ((files[-1], SIZE), (page, 0), (other, 0)):
                    write_dontcache(fd, place, bytes(PAGE))
                counted = counter(disk.device)[0]
                took = waited(lambda: not any(left_of(fd) for fd in (files[-1], page, other)), BOUND)
                after = sum(left_of(fd) for fd in files)
                writing.enter_context(meanwhile([lambda: write_often(root / "writer")]))
            left = sum(left_of(fd) for fd in files)
    tried(started is not None and before > FILES * SIZE // PAGE // 2, "a sync that has much to do")
    tried(counted == 3, "pages to be kicked")
    figures = f"{told_wait(took)}, {after} of {before} pages were left to the sync then, {left} after it"
    return Verdict(took is not None and after > before // 2 and not left, figures)


main(one_sync, breaks_c=True)
