# SPDX-License-Identifier: GPL-2.0
"""Shows the progress of a long step."""

import re
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Bar:
    """A bar with an estimate on a terminal, a plain line now and then elsewhere.

    The total is an estimate, or None where nothing is known beforehand. All of
    it goes to stderr: stdout belongs to results.
    """

    def __init__(self, title: str, total: float | None = None, interval: float = 30.0) -> None:
        self.title = title
        self.total = total
        self.interval = interval
        self.done = 0.0
        self.start = self.told = time.monotonic()
        self.terminal = sys.stderr.isatty()
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
        self.rich = Progress(*columns, console=Console(stderr=True), transient=True, disable=not self.terminal)
        self.task = self.rich.add_task(title, total=total)

    def advance(self, amount: float = 1) -> None:
        """So much more is done."""
        self.done += amount
        if self.total is not None and self.done > self.total:
            self.total = self.done
        self.rich.update(self.task, completed=int(self.done), total=self.total)
        if not self.terminal and time.monotonic() - self.told >= self.interval:
            self.told = time.monotonic()
            self._say(f"{100 * self.done / self.total:.0f} %" if self.total else f"{self.done:.0f} done")

    def count_built(self, line: str) -> None:
        """One more is done with each line of a kernel's build that names what is made, like "  CC  fs/buffer.o"."""
        if re.match(r"  [A-Z]", line):
            self.advance()

    def _say(self, text: str) -> None:
        print(f"{self.title}: {text} after {time.monotonic() - self.start:.0f} s", file=sys.stderr, flush=True)

    def __enter__(self) -> "Bar":
        self.rich.start()
        if not self.terminal:
            print(f"{self.title} ...", file=sys.stderr, flush=True)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.rich.stop()
        if kind is None:
            self._say("done")
