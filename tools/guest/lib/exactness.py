# SPDX-License-Identifier: GPL-2.0
"""Helpers for the rows of the exact counter: DONTCACHE writes, and events that change their dirty pages."""

from collections.abc import Callable
from pathlib import Path

from lib.dontcache import MIB, core, file_system, flusher_held, held, opened, write_pieces
from lib.row import KIB, NOTHING, Verdict, held_counter, on_each, synced_counter, tried

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
