# SPDX-License-Identifier: GPL-2.0
"""The rounds that the flusher makes with the reason "dontcache"."""

import re

from .kernel import TRACING, Refused, read, write


class Rounds:
    """Records them by a trace event.

    A round starts with the pages that the counter claims, so one event proves
    that the counter had moved, even where every sample came too late. The
    ring buffer is small and keeps the first events: reading them as text is
    slow in an emulated guest.
    """

    EVENT = f"{TRACING}/events/writeback/writeback_start"

    def __init__(self) -> None:
        reason = re.search(r'\{ *(\w+), *"dontcache" *\}', read(f"{self.EVENT}/format"))
        if not reason:
            raise Refused("the trace event writeback_start knows no reason dontcache")
        write(f"{TRACING}/tracing_on", "0")
        write(f"{TRACING}/buffer_size_kb", "16")
        write(f"{TRACING}/options/overwrite", "0")
        write(f"{self.EVENT}/filter", f"reason == {int(reason[1], 0)}")
        write(f"{self.EVENT}/enable", "1")

    def begin(self) -> None:
        """Forget what was, and record."""
        write(f"{TRACING}/trace", "")
        write(f"{TRACING}/tracing_on", "1")

    def end(self) -> int:
        """The most pages that a round began with."""
        write(f"{TRACING}/tracing_on", "0")
        pages = re.findall(r"nr_pages=(\d+) .*reason=dontcache", read(f"{TRACING}/trace"))
        return max(map(int, pages), default=0)
