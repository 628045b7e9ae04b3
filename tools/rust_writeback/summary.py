# SPDX-License-Identifier: GPL-2.0
"""From measurements to the figures of the table: C, Rust and their ratio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import histogram, stats
from .results import PAGE, PERCENTILES, Measurement

CORES = ("c", "rust")
NAMES = {"c": "C", "rust": "Rust"}


@dataclass(frozen=True)
class Metric:
    """A column: how a value is taken from one boot and from all boots."""

    name: str
    title: str
    unit: str
    of_boot: Callable[[Measurement], float]
    of_all: Callable[[Sequence[Measurement]], float]
    compared: bool = True


def _mean_of(value: Callable[[Measurement], float]) -> Callable[[Sequence[Measurement]], float]:
    return lambda boots: stats.geometric_mean([value(boot) for boot in boots])


def _worst_of(value: Callable[[Measurement], float]) -> Callable[[Sequence[Measurement]], float]:
    return lambda boots: max(value(boot) for boot in boots)


def _merged(percent: float) -> Callable[[Sequence[Measurement]], float]:
    return (
        lambda boots: histogram.percentile(histogram.merge(boot.outcome.latency for boot in boots), percent) / 1e6
    )


def _latency(percent: float) -> Metric:
    name = f"p{percent:g}"
    return Metric(name, name, "ms", lambda boot: boot.percentile_ms(percent), _merged(percent))


def _bandwidth(boot: Measurement) -> float:
    return boot.outcome.mb_per_s


def _dirty(boot: Measurement) -> float:
    return boot.peak_dirty_pages * PAGE / 1e6


def _cached(boot: Measurement) -> float:
    return boot.cached_pages * PAGE / 1e6


def _counter(boot: Measurement) -> float:
    return abs(boot.counter_after)


METRICS = (
    Metric("mb_per_s", "bandwidth", "MB/s", _bandwidth, _mean_of(_bandwidth)),
    *(_latency(percent) for percent in PERCENTILES),
    Metric("peak_dirty", "peak dirty", "MB", _dirty, _mean_of(_dirty)),
    Metric("cached_after", "cached after", "MB", _cached, _worst_of(_cached), compared=False),
    Metric("counter_after", "counter after", "pages", _counter, _worst_of(_counter), compared=False),
)


@dataclass(frozen=True)
class Cell:
    """One metric of one scenario and mode."""

    metric: Metric
    values: dict[str, float]
    """core -> the figure over all boots"""
    boots: dict[str, list[float]]
    """core -> the figure of each boot, in the order of the pairs"""
    ratio: stats.Ratio | None


@dataclass(frozen=True)
class Group:
    """All figures of one scenario in one mode."""

    scenario: str
    mode: str
    pairs: int
    cells: list[Cell]

    def cell(self, name: str) -> Cell:
        """The cell of a metric."""
        return next(cell for cell in self.cells if cell.metric.name == name)


def summarize(measurements: Sequence[Measurement]) -> list[Group]:
    """Group by scenario and mode, in the order in which they come, scenarios first."""
    scenarios = list(dict.fromkeys(m.scenario for m in measurements))
    modes = list(dict.fromkeys(m.mode for m in measurements))
    groups = []
    for scenario in scenarios:
        for mode in modes:
            chosen = [m for m in measurements if (m.scenario, m.mode) == (scenario, mode)]
            if chosen:
                groups.append(_group(scenario, mode, chosen))
    return groups


def _group(scenario: str, mode: str, chosen: Sequence[Measurement]) -> Group:
    by_core = {core: sorted((m for m in chosen if m.core == core), key=lambda m: m.pair) for core in CORES}
    if [m.pair for m in by_core["c"]] != [m.pair for m in by_core["rust"]]:
        raise ValueError(f"{scenario}, {mode}: the boots are not paired")
    cells = []
    for metric in METRICS:
        boots = {core: [metric.of_boot(m) for m in by_core[core]] for core in CORES}
        ratio = stats.paired_ratio(boots["c"], boots["rust"]) if metric.compared else None
        cells.append(Cell(metric, {core: metric.of_all(by_core[core]) for core in CORES}, boots, ratio))
    return Group(scenario, mode, len(by_core["c"]), cells)


def verdicts(groups: Sequence[Group]) -> list[str]:
    """What the intervals show, in sentences that do not claim more than they do."""
    compared = [
        (group, cell, cell.ratio)
        for group in groups
        for cell in group.cells
        if cell.ratio is not None and cell.ratio.pairs > 1
    ]
    if not compared:
        return ["One pair of boots shows no difference and no equality: take more pairs."]
    shown = [item for item in compared if item[2].shown]
    pairs = max(ratio.pairs for _, _, ratio in compared)
    lines = [
        f"Rust/C over {pairs} pairs of boots, 95 % intervals: {stats.NO_DIFFERENCE} in"
        f" {len(compared) - len(shown)} of {len(compared)} comparisons."
        f" By chance alone about {len(compared) * (1 - stats.CONFIDENCE):.0f} would exclude 1."
    ]
    for group, cell, ratio in shown:
        lines.append(f"{group.scenario}, {group.mode}, {cell.metric.title}: {ratio.verdict()}, {ratio}")
    return lines
