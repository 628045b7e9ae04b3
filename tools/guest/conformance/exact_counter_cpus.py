# SPDX-License-Identifier: GPL-2.0
"""Every CPU but the first goes offline and online again and again while writers run on all CPUs"""

import os
from functools import partial
from pathlib import Path

from lib.dontcache import KIB, MIB, file_system, for_a_while, forked, opened, write_pieces
from lib.row import NOTHING, SHORT, Verdict, main, on_each, pages_left, synced_counter, told, tried

CPUS = sorted(Path("/sys/devices/system/cpu").glob("cpu[1-9]*/online"))
SECONDS = 5 if SHORT else 60
"""On each of two file systems."""
WRITERS = 4
LENGTH = 8 * MIB
PIECES = (4 * KIB, 64 * KIB)


def write(path: Path, piece: int) -> None:
    with opened(path) as fd:
        for _ in for_a_while(SECONDS):
            write_pieces(fd, LENGTH, piece)
            os.fsync(fd)
        assert pages_left(fd, LENGTH, 3) == 0, f"pages of {path.name} stay"


def plug() -> int:
    """How often a CPU has gone and come back."""
    times = 0
    for _ in for_a_while(SECONDS):
        for cpu in CPUS:
            cpu.write_text("0")
            cpu.write_text("1")
            times += 1
    return times


def cpus(kind: str) -> Verdict:
    with file_system(kind) as root:
        children = [forked(partial(write, root / str(nr), PIECES[nr % 2])) for nr in range(WRITERS)]
        times = plug()
        ended = [os.waitpid(child, 0)[1] for child in children]
        end = synced_counter()
    tried(times > len(CPUS), f"CPUs that come back {times} times")
    failed = sum(map(bool, ended))
    return Verdict(end == NOTHING and not failed, f"{times} times, {failed} writers failed, synced {told(end)}")


main(lambda: on_each(cpus), breaks_c=True)
