# SPDX-License-Identifier: GPL-2.0
"""Helpers for the rows of the conformance table: how a row ends, and how it reads the counter and the page cache.

A row that cannot be run, or that has not tried what it is for, raises. Only a row that has tried it reports
whether the promise was kept.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from lib.dontcache import KIB, MIB, NVME, cached_pages, core, counter, file_system, flusher_held, held, opened, waited
from lib.dontcache import write_pieces

SHORT = os.environ.get("CONFORMANCE") == "short"
"""As a part of all tests: little time for what is a matter of luck."""

QUIET = 0.2
"""Seconds between two readings of the counter that have to agree."""

SPOILT = 99
"""The status of a row whose guest is no good for others: a counter that is off stays so, and so does a mount."""

ATTEMPTS = 3
"""How often a row may begin anew that has not tried what it is there for."""

BOUND = 1
"""Seconds within which a kick has to be served, whatever else there is to do."""

PATIENCE = 10
"""Seconds until what a row waits for before it tries anything has to be called missing."""


class Verdict(NamedTuple):
    """Whether the promise was kept, the figures that show it, and what was wrong in each place that was tried."""

    kept: bool
    figures: str
    each: dict[str, str] = {}


class NotTried(AssertionError):
    """The row has not come to what it is there for: a matter of luck on a busy host."""


def of_each(wrong: dict[str, str]) -> Verdict:
    """Whether nothing is wrong in any place."""
    figures = "; ".join(f"{name}: {words}" for name, words in wrong.items() if words)
    return Verdict(not figures, figures or f"{len(wrong)} of {len(wrong)}", wrong)


def nothing_left(left: dict[str, int]) -> Verdict:
    """Whether no page is cached, in all cases."""
    return Verdict(not any(left.values()), "pages left: " + ", ".join(f"{case} {pages}" for case, pages in left.items()))


def on_each(row: Callable[[Any], Verdict], places: Iterable[object] = ("ext4", "xfs")) -> Verdict:
    """The row on each file system, or in other places. A broken promise counts, even if a later place was not tried."""
    told: dict[object, Verdict] = {}
    for place in places:
        try:
            told[place] = row(place)
        except NotTried:
            if all(verdict.kept for verdict in told.values()):
                raise
    figures = "; ".join(f"{place} {verdict.figures}" for place, verdict in told.items())
    return Verdict(all(verdict.kept for verdict in told.values()), figures)


def main(row: Callable[[], Verdict], breaks_c: bool = False, stacks: bool = False, whole: bool = False) -> None:
    """Runs the row, again if it had no luck, and tells what came of it.

    With stacks the row gets the kernel that has drivers for them. With whole it is no part of make test: it
    compares times, and a busy host would break it. With breaks_c a long run in which C keeps the promise counts as not
    tried, because the row would prove nothing about Rust then.
    """
    for attempt in range(ATTEMPTS):
        try:
            kept, figures, each = row()
            tried(not (kept and breaks_c and core() == "c" and not SHORT), f"what breaks C: {figures}")
            break
        except Exception as error:
            if attempt == ATTEMPTS - 1 or not isinstance(error, NotTried):
                traceback.print_exc()
                sys.exit(SPOILT)
    print(json.dumps({"kept": kept, "figures": figures, "each": each}), flush=True)
    if not kept:
        sys.exit(SPOILT)


def tried(happened: object, what: str) -> None:
    """Raises unless the row has come to what it is there for."""
    if not happened:
        raise NotTried(f"not tried: {what}")


def quiet_counter(device: str = NVME, seconds: float = 10) -> tuple[int, int]:
    """The counter and what is there, once two readings agree; the last ones if they never do."""
    deadline = time.monotonic() + seconds
    before = counter(device)
    while True:
        time.sleep(QUIET)
        now = counter(device)
        if now == before or time.monotonic() > deadline:
            return now
        before = now


def held_counter(device: str = NVME) -> tuple[int, int]:
    """The counter and what is there, once they agree; if they never do, as they are in the end.

    For a moment at which nobody writes and the flusher is held back: it does not sleep, which would let
    the flusher go on.
    """
    for _ in range(6):
        reading = counter(device)
        if reading[0] == reading[1]:
            break
    return reading


def synced_counter(device: str = NVME) -> tuple[int, int]:
    """The counter when all is written: nothing should be dirty, and nothing counted."""
    os.sync()
    return quiet_counter(device)


NOTHING = (0, 0)
"""What the counter is to say then."""


def told_wait(took: float | None) -> str:
    """How long a kick took to be served, in words."""
    return f"not written in {BOUND} s" if took is None else f"written after {took * 1000:.0f} ms"


def pages_left(fd: int, length: int, seconds: float) -> int:
    """The cached pages, once there is none or the time is over."""
    waited(lambda: not cached_pages(fd, length), seconds)
    return cached_pages(fd, length)


# For the rows of the exact counter: DONTCACHE writes, and events that change their dirty pages.

SIZE = 4 * MIB
PIECE = 256 * KIB
"""The length of each write, which makes large folios."""


def dirty(fd: int, size: int = SIZE) -> None:
    """Writes with DONTCACHE."""
    write_pieces(fd, size, PIECE)


def told(reading: tuple[int, int]) -> str:
    """One reading of the counter in words."""
    return f"{reading[0]} of {reading[1]}"


def exact(reading: tuple[int, int]) -> bool:
    """Does the counter say what is there?"""
    return reading[0] == reading[1]


def exact_after(what: str, subject: Callable[[int, Path], None]) -> Verdict:
    """The counter once the subject has happened to a file whose pages are dirty, and after a sync.

    The flusher is held back meanwhile, and nobody kicks it, for the subject may sleep: so the pages are
    dirty when it happens, some are afterwards, and the counter is read at a quiet moment.
    """

    def on(kind: str) -> Verdict:
        with file_system(kind) as root, opened(root / "file") as fd:
            with held(), flusher_held():
                dirty(fd)
                before = held_counter()
                subject(fd, root / "file")
                after = held_counter()
            end = synced_counter()
        kept = exact(before) and exact(after) and end == NOTHING
        # The C core cannot be kept from writing while the subject sleeps.
        tried(not kept or (before[1] and (after[1] or core() == "c")), f"dirty pages: {told(before)}, {what} {told(after)}")
        return Verdict(kept, f"{told(before)}, {what} {told(after)}, synced {told(end)}")

    return on_each(on)
