# SPDX-License-Identifier: GPL-2.0
"""The tables of a comparison, as rows of text, for a terminal and as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from .catalogue import SCALE
from .contenders import KERNEL, title
from .summary import Cell, Group, Metric


def number(value: float) -> str:
    """Three digits that mean something."""
    if value == 0:
        return "0"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def many(noun: str, number: int) -> str:
    """1 pair, 3 pairs."""
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _about(group: Group, names: Sequence[str]) -> list[str]:
    """What a row is about; on the table beside, the core has the mode's place."""
    known = {"scenario": group.scenario, "drive": group.drive.partition(" ")[0], "place": group.place}
    return [known.get(name) or title(group.mode) for name in names]


def _number(value: float | None, metric: Metric) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if metric.unit == "pages" else number(value)


def _ratio(cell: Cell | None, variant: str) -> str:
    return str(cell.ratios[variant]) if cell and variant in cell.ratios else ""


@dataclass(frozen=True)
class Table:
    """A heading, and a row for each variant of each load and for each ratio."""

    heading: str
    groups: Sequence[Group]
    columns: Sequence[Metric]

    @property
    def metrics(self) -> list[Metric]:
        """The columns for which there are figures."""
        there = {name for group in self.groups for name, cell in group.cells.items() if cell.values}
        return [metric for metric in self.columns if metric.name in there]

    def names(self) -> list[str]:
        """The columns that say what a row is about; drive and place only where there are several."""
        names = ["scenario"]
        names += [name for name in ("drive", "place") if len({getattr(group, name) for group in self.groups}) > 1]
        # On one kernel the modes are what is compared.
        return [*names, "mode"] if all(group.mode == KERNEL for group in self.groups) else [*names, "mode", "core"]

    def header(self) -> list[str]:
        """The titles of the columns."""
        return [*self.names(), *(f"{metric.title}, {metric.unit}".removesuffix(", ") for metric in self.metrics)]

    def rows(self) -> list[list[str]]:
        """The rows for which there is anything."""
        return [row for group in self.groups for row in self._rows(group)]

    def _rows(self, group: Group) -> list[list[str]]:
        about = _about(group, self.names()[:-1])
        chosen = [(metric, group.cells.get(metric.name)) for metric in self.metrics]
        result = []
        for variant in group.variants:
            if any(cell and variant in cell.values for _, cell in chosen):
                values = [_number(cell.values.get(variant), metric) if cell else "" for metric, cell in chosen]
                result.append([*about, title(variant), *values])
        for variant in group.variants[1:]:
            if any(cell and variant in cell.ratios for _, cell in chosen):
                ratios = [_ratio(cell, variant) for _, cell in chosen]
                result.append([*about, f"{title(variant)}/{title(group.variants[0])}", *ratios])
        return result


class Beside(Table):
    """A row for each load and core: the figures of all modes, DONTCACHE's ratios to buffered, and that of O_DIRECT."""

    def names(self) -> list[str]:
        """The core stands in the mode's place."""
        return [name for name in super().names() if name != "mode"]

    def header(self) -> list[str]:
        """The first metric has a column for each mode, and two for ratios."""
        first, *others = self.metrics
        titles = [f"{mode}, {first.unit}" for mode in ("buffered", "DONTCACHE", "O_DIRECT")]
        ratios = [f"ratio {first.title}", "O_DIRECT ratio", *(f"ratio of {metric.title}" for metric in others)]
        return [*self.names(), *titles, *ratios]

    def _rows(self, group: Group) -> list[list[str]]:
        if group.variants[-1] == SCALE:
            return []
        cells = [group.cells.get(metric.name) for metric in self.metrics]
        scale = {one.key: one.cells[self.metrics[0].name] for one in self.groups if one.variants[-1] == SCALE}
        first, direct = group.cells[self.metrics[0].name], scale.get(group.key)
        values = [_number(first.values.get(variant), first.metric) for variant in group.variants]
        values.append(_number(direct.values.get(SCALE), first.metric) if direct else "")
        ratios = [_ratio(cell, group.variants[1]) for cell in cells]
        return [[*_about(group, self.names()), *values, ratios[0], _ratio(direct, SCALE), *ratios[1:]]]
