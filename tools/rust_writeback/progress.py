# SPDX-License-Identifier: GPL-2.0
"""Shows the progress of a long step."""

from __future__ import annotations

import re
import sys
import time


class Bar:
    """A line on stderr now and then: how much is done.

    The total is an estimate, or None where nothing is known beforehand.
    """

    def __init__(self, title: str, total: float | None = None, interval: float = 30.0) -> None:
        self.title = title
        self.total = total
        self.interval = interval
        self.done = 0.0
        self.start = self.told = time.monotonic()

    def advance(self, amount: float = 1) -> None:
        """So much more is done."""
        self.done += amount
        if time.monotonic() - self.told >= self.interval:
            self.told = time.monotonic()
            self._say(f"{min(100 * self.done / self.total, 99):.0f} %" if self.total else f"{self.done:.0f} done")

    def count_built(self, line: str) -> None:
        """One more is done with each line of a kernel's build that names what is made, like "  CC  fs/buffer.o"."""
        if re.match(r"  [A-Z]", line):
            self.advance()

    def _say(self, text: str) -> None:
        print(f"{self.title}: {text} after {time.monotonic() - self.start:.0f} s", file=sys.stderr, flush=True)

    def __enter__(self) -> Bar:
        print(f"{self.title} ...", file=sys.stderr, flush=True)
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self._say("done")
