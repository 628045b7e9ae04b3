# SPDX-License-Identifier: GPL-2.0
"""Lists the ways to write a page with DONTCACHE: each interface, with all combinations of open and write flags.

The documentation says which of them a kernel accepts: pwritev2(2), open(2), io_uring_enter(2), and the source
of those that refuse one. `documented()` has all of it. A write that is refused and should not be, or the reverse,
is as wrong as data that cannot be read back.
"""

import errno
import itertools
import mmap
import os
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_

from lib.dontcache import PAGE, opened, pattern
from lib.interfaces import INTERFACES
from lib.row import tried

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
            if took != PAGE or os.pread(fd, PAGE, at) != page[:]:
                wrong.append(f"{name} took {took} bytes")
    tried(wrong or taken == INTERFACES.keys(), f"each interface: only {', '.join(taken)}")
    return wrong[:MOST]
