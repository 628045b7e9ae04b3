# SPDX-License-Identifier: GPL-2.0
"""Tables and pages in Markdown, which a terminal shows, too."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.table import Table

WIDTH = 160
"""Columns of a page where there is no terminal to ask."""


class Folded(TableElement):
    """A table that breaks a word which is too long, instead of cutting it off."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            assert isinstance(table, Table)
            table.pad_edge = False
            table.columns[0].min_width = 12  # the name of a load, whole
            for column in table.columns:
                column.overflow = "fold"
            yield table


class Page(Markdown):
    """Markdown with such tables."""

    elements = {**Markdown.elements, "table_open": Folded}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table, whose first columns are text and the others figures."""
    ruler = ["---" if column < left else "---:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in (header, ruler, *rows))


def show(page: str) -> None:
    """Print a page on stdout."""
    Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False).print(Page(page))
