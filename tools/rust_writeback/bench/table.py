# SPDX-License-Identifier: GPL-2.0
"""The tables of a comparison, as rows of text, for a terminal and as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from .summary import MAIN, SHORT, Group, Metric
from .variants import KERNEL, title

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


def many(noun: str, *numbers: int) -> str:
    """1 pair, 3 pairs, 3 to 10 pairs."""
    told = " to ".join(dict.fromkeys(map(str, numbers)))
    return f"{told} {noun}{'s' if told != '1' else ''}"


NAMES = ["scenario", "mode", "core"]


def names(groups: Sequence[Group]) -> list[str]:
    """The columns that say what a row is about; a place only where there are several.

    On one kernel the modes are what is compared.
    """
    if groups and all(group.mode == KERNEL for group in groups):
        return ["scenario", "mode"]
    return [*NAMES[:1], "place", *NAMES[1:]] if len({group.place for group in groups}) > 1 else NAMES


def header(groups: Sequence[Group], metrics: Sequence[Metric] = SHORT) -> list[str]:
    """The titles of the columns."""
    titles = [
        metric.unit if metric.name == MAIN else f"{metric.title}, {metric.unit}".removesuffix(", ")
        for metric in metrics
    ]
    return [*names(groups), *titles]


def rows(groups: Sequence[Group], metrics: Sequence[Metric] = SHORT) -> list[list[str]]:
    """A row for each variant of a scenario and mode, and one for each ratio, where there is anything."""
    result = []
    columns = names(groups)
    for group in groups:
        parts = {"scenario": group.scenario, "place": group.place, "mode": group.mode}
        about = [parts[column] for column in columns[:-1]]
        cells = {cell.metric.name: cell for cell in group.cells}
        chosen = [(metric, cells.get(metric.name)) for metric in metrics]
        if not any(cell and cell.values for _, cell in chosen):
            continue  # nothing of this was measured here
        for variant in group.variants:
            if not any(cell and variant in cell.values for _, cell in chosen):
                continue
            values = [_value(cell.values.get(variant), metric.unit) if cell else "" for metric, cell in chosen]
            result.append([*about, title(variant), *values])
        for variant in group.variants[1:]:
            if not any(cell and variant in cell.ratios for _, cell in chosen):
                continue
            ratios = [str(cell.ratios[variant]) if cell and variant in cell.ratios else "" for _, cell in chosen]
            result.append([*about, f"{title(variant)}/{title(group.variants[0])}", *ratios])
    return result


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if unit == "pages" else number(value)


def show(groups: Sequence[Group], metrics: Sequence[Metric] = SHORT) -> None:
    """Print a table on stdout."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    count = len(names(groups))
    for index, name in enumerate(header(groups, metrics)):
        left = index < count
        heading = name.replace(", ", "\n")
        table.add_column(heading, justify="left" if left else "right", overflow="fold", no_wrap=left)
    last = [""] * (count - 1)
    for row in rows(groups, metrics):
        if last[0] and row[0] != last[0]:
            table.add_section()
        about = ["" if row[: index + 1] == last[: index + 1] else row[index] for index in range(count - 1)]
        last = row[: count - 1]
        # The interval goes below the ratio: a terminal is narrow.
        cells = [cell.replace(" (", "\n(") for cell in row[count:]]
        table.add_row(*about, row[count - 1], *cells, style="bold" if "/" in row[count - 1] else None)
    console.print(table)


def markdown(groups: Sequence[Group], metrics: Sequence[Metric] = SHORT) -> str:
    """The same table for a README."""
    lines = ["| " + " | ".join(header(groups, metrics)) + " |"]
    lines.append("| " + " | ".join(["---"] * len(names(groups)) + ["---:"] * len(metrics)) + " |")
    lines += ["| " + " | ".join(row) + " |" for row in rows(groups, metrics)]
    return "\n".join(lines) + "\n"
