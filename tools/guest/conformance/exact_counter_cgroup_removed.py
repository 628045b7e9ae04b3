# SPDX-License-Identifier: GPL-2.0
"""A cgroup with 3000 dirty inodes is removed while another cgroup writes to one; unmounts with lazytime"""

import os
from functools import partial
from pathlib import Path

from lib.dontcache import KIB, NVME, cgroup, counter, file_system, forked, held, in_cgroup, mounted, opened
from lib.dontcache import setting, until, write_dontcache
from lib.row import NOTHING, SHORT, Verdict, main, on_each, told, tried

INODES = 3000
UNMOUNTS = 20 if SHORT else 200
FEW, WRITES = 20, 1000


def write_files(root: Path, count: int, times: int = 1) -> None:
    for nr in [*range(count)] * times:
        with opened(root / str(nr)) as fd:
            write_dontcache(fd, 0, bytes(4 * KIB))


def many_inodes(kind: str) -> tuple[int, int]:
    """The counter once the cgroup is gone, its inodes have moved, and all is written."""
    with file_system(kind) as root, cgroup("others") as others:
        with held(), cgroup("gone") as gone:
            in_cgroup(gone, lambda: write_files(root, INODES))
            before = counter()
            tried(before[0] >= INODES, f"dirty inodes: {told(before)}")
            writer = forked(lambda: in_cgroup(others, lambda: write_files(root, 1, WRITES)))
        assert not os.waitpid(writer, 0)[1], "the other cgroup cannot write"
        until(lambda: counter()[1] == 0, 20, "all is written")
        return counter()


def unmounted(kind: str) -> tuple[int, int]:
    """The counter after unmounts beside inodes that move because their cgroup is removed."""
    with file_system(kind):
        pass
    for nr in range(UNMOUNTS):
        with cgroup(f"group{nr}") as group, setting(Path("/proc/sys/vm/dirtytime_expire_seconds"), 0):
            with mounted(kind, mode="lazytime") as root:
                in_cgroup(group, partial(write_files, root, FEW))
                # Its clean inodes begin to move to another wb.
                os.rmdir(group)
            group.mkdir()
    return counter(NVME)


def removed(kind: str) -> Verdict:
    ends = many_inodes(kind), unmounted(kind)
    return Verdict(ends == (NOTHING, NOTHING), f"3000 inodes {told(ends[0])}, {UNMOUNTS} unmounts {told(ends[1])}")


main(lambda: on_each(removed))
