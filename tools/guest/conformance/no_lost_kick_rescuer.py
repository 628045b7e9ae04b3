# SPDX-License-Identifier: GPL-2.0
"""1024 pages while no worker can be created, so that the rescuer of the workqueue runs the flusher."""

import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from lib.devices import loop
from lib.dontcache import MIB, PAGE, cachestat, file_system, frozen, never_many, never_periodic, numbers_of, opened, setting
from lib.dontcache import start_writeback, trace, waited, write_dontcache
from lib.row import BOUND, Verdict, main, on_each, told_wait, tried
from lib.walk import SECTOR, NullBlock

SIZE = 1024 * PAGE
"""As much as the rescuer writes of a file before it takes the next one, and each time that it runs."""
FILES = max(64 * MIB // SIZE, 4)
DISK_MIB = 8 * FILES * SIZE // MIB
"""ext4 waits for the flusher where much is dirty beside what is free."""
THREADS = Path("/proc/sys/kernel/threads-max")
FEWEST = "20"
"""Threads there may be, says the kernel; there are more."""
RESCUER = "kworker/R"
TASK = re.compile(r".*-(\d+) +\[")
AFFINITY = Path("/sys/module/workqueue/parameters/default_affinity_scope")


def workers() -> int:
    """The threads that run works that are bound to no CPU, which the flusher's is."""
    names = [path.read_text() for path in Path("/proc").glob("[0-9]*/comm")]
    return sum(name.startswith("kworker/u") for name in names)


def by_rescuer(line: str) -> bool:
    """Whether a rescuer is the task of this line of a trace, which need not know its name."""
    task = TASK.match(line)
    assert task, f"of no task: {line}"
    try:
        return Path(f"/proc/{task[1]}/comm").read_text().startswith(RESCUER)
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def no_workers() -> Iterator[None]:
    """Each worker waits for a file system that is frozen, on behalf of a loop device."""
    with contextlib.ExitStack() as stack:
        # All CPUs share the workers.
        stack.enter_context(setting(AFFINITY, "system"))
        root = stack.enter_context(file_system("xfs"))
        nodes = [stack.enter_context(loop(root / f"{number}")) for number in range(workers() + 4)]
        loops = [stack.enter_context(opened(node, os.O_RDWR)) for node in nodes]
        stack.enter_context(frozen(root))
        stack.enter_context(setting(THREADS, FEWEST))
        for fd in loops:
            os.pwrite(fd, bytes(PAGE), 0)
            start_writeback(fd, 0, PAGE)
        yield


def rescuer(kind: str) -> Verdict:
    with NullBlock(DISK_MIB, SECTOR) as disk, file_system(kind, disk.device) as root, never_periodic(), never_many():
        with contextlib.ExitStack() as stack:
            before = [stack.enter_context(opened(root / f"{number}")) for number in range(FILES)]
            fd = stack.enter_context(opened(root / "page"))
            stack.enter_context(no_workers())
            for other in before:
                os.pwrite(other, bytes(SIZE), 0)
            with trace("writeback/writeback_single_inode") as lines:
                write_dontcache(fd, 0, bytes(PAGE))
                took = waited(lambda: cachestat(fd).dirty == 0, BOUND)
            page, others = os.fstat(fd), {os.fstat(other).st_ino for other in before}
            bdi = f"bdi {numbers_of(disk.device)}: "
            written = [line for line in lines() if bdi in line]
            inodes = [int(line.partition(f"{bdi}ino=")[2].split()[0]) for line in written]
            rescued = any(map(by_rescuer, written))
            by_others = any(inode == page.st_ino and not by_rescuer(line) for inode, line in zip(inodes, written))
    tried(rescued and not by_others, "a flusher that the rescuer runs")
    first = sum(inode in others for inode in itertools.takewhile(lambda inode: inode != page.st_ino, inodes))
    # The page may wait for the file that the rescuer has begun, not for all that has been dirty for longer.
    return Verdict(took is not None and first <= 1, f"{told_wait(took)}, {first} of {FILES} other files came first")


main(lambda: on_each(rescuer), breaks_c=True)
