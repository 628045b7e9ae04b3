# SPDX-License-Identifier: GPL-2.0
"""The table of the comparison, as rows of text, for a terminal and as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from .summary import CORES, METRICS, NAMES, Group

WIDTH = 140
"""Columns of the table where there is no terminal to ask."""

LEGEND = (
    "MB/s: 10^6 bytes a second, geometric mean over the boots. p50, p99, p99.9: completion latency,"
    " from the histograms of all jobs and boots added up. peak dirty: most dirty memory seen in samples,"
    " geometric mean. cached after: in the page cache after sync. counter after: what the scenario left on the"
    " counter after sync. Both of the worst boot."
    " Rust/C: geometric mean of the ratios within the pairs of boots, with its 95 % interval."
)


def number(value: float) -> str:
    """Three digits that mean something."""
    if value == 0:
        return "0"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def header() -> list[str]:
    """The titles of the columns."""
    titles = [metric.unit if metric.unit == "MB/s" else f"{metric.title}, {metric.unit}" for metric in METRICS]
    return ["scenario", "mode", "core", *titles]


def rows(groups: Sequence[Group]) -> list[list[str]]:
    """Three rows for each scenario and mode: C, Rust, Rust/C."""
    result = []
    for group in groups:
        for core in CORES:
            values = [_value(cell.values[core], cell.metric.unit) for cell in group.cells]
            result.append([group.scenario, group.mode, NAMES[core], *values])
        ratios = [str(cell.ratio) if cell.ratio else "" for cell in group.cells]
        result.append([group.scenario, group.mode, "Rust/C", *ratios])
    return result


def _value(value: float, unit: str) -> str:
    return f"{value:.0f}" if unit == "pages" else number(value)


def show(groups: Sequence[Group]) -> None:
    """Print the table on stdout."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for index, title in enumerate(header()):
        table.add_column(title.replace(", ", "\n"), justify="left" if index < 3 else "right", overflow="fold")
    last = ["", ""]
    for row in rows(groups):
        if last[0] and row[0] != last[0]:
            table.add_section()
        names = ["" if row[:2] == last[:2] and i == 1 or row[0] == last[0] and i == 0 else row[i] for i in range(2)]
        last = row[:2]
        # The interval goes below the ratio: a terminal is narrow.
        table.add_row(*names, row[2], *(cell.replace(" (", "\n(") for cell in row[3:]), style="bold" if row[2] == "Rust/C" else None)
    console.print(table)


def markdown(groups: Sequence[Group]) -> str:
    """The same table for a README."""
    lines = ["| " + " | ".join(header()) + " |"]
    lines.append("| " + " | ".join(["---"] * 3 + ["---:"] * len(METRICS)) + " |")
    lines += ["| " + " | ".join(row) + " |" for row in rows(groups)]
    return "\n".join(lines) + "\n"
