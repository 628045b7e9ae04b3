# SPDX-License-Identifier: GPL-2.0
"""Few pages wait for more, and enough pages begin a round: in one file, in several files, in cgroups, in one of little memory"""

import contextlib
import multiprocessing
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lib.dontcache import MIB, PAGE, beside, cgroup, file_system, in_cgroup, left_of, never_many, never_periodic, opened, trace
from lib.dontcache import waited, write_pieces
from lib.row import PATIENCE, Verdict, main, tried

DELAY = 0.2
"""Seconds for which few pages wait."""
PIECE = 64 << 10
ATTEMPTS = 5
"""How often the pages are written, until it takes less than the delay to do so and to look for a round."""

LITTLE = str(24 * MIB)
"""Half of it is where background writeback begins, and a quarter of that is enough."""
CASES = (
    ("10 MiB of a file", 1, 10 * MIB, "", False),
    ("20 MiB of a file", 1, 20 * MIB, "", True),
    ("10 MiB of 4 files", 4, 10 * MIB, "", False),
    ("20 MiB of 4 files", 4, 20 * MIB, "", True),
    ("18 MiB of 2 cgroups", 2, 18 * MIB, "max", False),
    ("40 MiB of 2 cgroups", 2, 40 * MIB, "max", True),
    ("8 MiB of a cgroup of 24 MiB", 1, 8 * MIB, LITTLE, True),
)
"""How many files, how much, the memory of the cgroups if each file has one and so a wb of its own, and whether that is
enough."""


def write_all(files: Sequence[int], size: int, groups: Sequence[Path]) -> float:
    """Writes to each file, in its cgroup if there are cgroups; when the first write began."""
    if not groups:
        begin = time.monotonic()
        for fd in files:
            write_pieces(fd, size, PIECE)
        return begin
    there, go = multiprocessing.Barrier(len(groups) + 1), multiprocessing.Event()

    def member(fd: int) -> None:
        there.wait()
        go.wait()
        write_pieces(fd, size, PIECE)

    with beside(*(partial(in_cgroup, group, partial(member, fd)) for fd, group in zip(files, groups, strict=True))):
        # To enter a cgroup may take as long as few pages wait, so all have entered before the first writes.
        there.wait()
        begin = time.monotonic()
        go.set()
    return begin


def has_begun(root: Path, number: int, size: int, limit: str) -> tuple[bool, float]:
    """Whether a round began after so many files were written to, so much together, and how long that took to learn."""
    with contextlib.ExitStack() as stack:
        paths = [root / str(each) for each in range(number)]
        groups = [stack.enter_context(cgroup(f"of-{path.name}")) for path in paths if limit]
        files = [stack.enter_context(opened(path)) for path in paths]
        for group in groups:
            (group / "memory.max").write_text(limit)
        if limit == LITTLE:
            # A wb knows its background limit from its first round on.
            in_cgroup(groups[0], partial(write_pieces, files[0], PAGE, PAGE))
            tried(waited(lambda: not left_of(files[0]), PATIENCE), "a first round")
        with trace("writeback/writeback_start") as lines:
            begin = write_all(files, size // number, groups)
            begun, took = any("reason=dontcache" in line for line in lines()), time.monotonic() - begin
        tried(waited(lambda: not any(left_of(fd) for fd in files), PATIENCE), "a round that wrote all")
        return begun, took


def gathered() -> Verdict:
    figures = []
    with never_periodic(), never_many():
        for what, number, size, limit, enough in CASES:
            for _ in range(ATTEMPTS):
                with file_system("xfs") as root:
                    begun, took = has_begun(root, number, size, limit)
                if took < DELAY:
                    break
            # A round that begins later may be for a page that has waited for long enough.
            tried(took < DELAY, f"{what} within {DELAY} s: it took {took:.2f} s")
            figures.append(f"{what}: {'a round' if begun else 'no round'}")
            if begun != enough:
                return Verdict(False, "; ".join(figures))
    return Verdict(True, "; ".join(figures))


main(gathered, breaks_c=True)
