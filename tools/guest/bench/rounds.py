# SPDX-License-Identifier: GPL-2.0
"""The rounds that the flusher makes with the reason "dontcache"."""

import os
import re

from .kernel import TRACING, Refused, read, write


class Rounds:
    """Counts them by a trace event.

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
        """Forget what was, and count."""
        write(f"{TRACING}/trace", "")
        write(f"{TRACING}/tracing_on", "1")

    def end(self) -> dict[str, int]:
        """How many rounds there were, and the most pages that one began with."""
        write(f"{TRACING}/tracing_on", "0")
        rounds = 0
        for cpu in range(os.cpu_count() or 1):
            for line in read(f"{TRACING}/per_cpu/cpu{cpu}/stats").splitlines():
                name, _, value = line.partition(":")
                if name in ("entries", "overrun", "dropped events"):
                    rounds += int(value)
        pages = [int(number) for number in re.findall(r"nr_pages=(\d+) .*reason=dontcache", read(f"{TRACING}/trace"))]
        return {"rounds": rounds, "most_pages": max(pages, default=0)}
