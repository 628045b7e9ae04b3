# SPDX-License-Identifier: GPL-2.0
"""From measurements to the figures of the tables: every variant, and its ratio to the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import histogram, stats
from .results import PAGE, PERCENTILES, Counts, Measurement
from .variants import KERNEL, title


@dataclass(frozen=True)
class Metric:
    """A column: how a value is taken from one boot and from all boots."""

    name: str
    title: str
    unit: str
    of_boot: Callable[[Measurement], float | None]
    """None where it does not apply"""
    of_all: Callable[[Sequence[Measurement]], float]
    compared: bool = True
    of_step: bool = True
    """Does it belong to the step as a whole, not to each section?"""


def _mean_of(value: Callable[[Measurement], float | None]) -> Callable[[Sequence[Measurement]], float]:
    return lambda boots: stats.geometric_mean([value(boot) or 0.0 for boot in boots])


def _worst_of(value: Callable[[Measurement], float | None]) -> Callable[[Sequence[Measurement]], float]:
    return lambda boots: max(value(boot) or 0.0 for boot in boots)


def _merged(percent: float) -> Callable[[Sequence[Measurement]], float]:
    return (
        lambda boots: histogram.percentile(histogram.merge(boot.outcome.latency for boot in boots), percent) / 1e6
    )


def _latency(percent: float) -> Metric:
    name = f"p{percent:g}"
    return Metric(name, name, "ms", lambda boot: boot.percentile_ms(percent), _merged(percent), of_step=False)


def _mean(
    name: str, title: str, unit: str, value: Callable[[Measurement], float | None], of_step: bool = True
) -> Metric:
    return Metric(name, title, unit, value, _mean_of(value), of_step=of_step)


def _worst(name: str, title: str, unit: str, value: Callable[[Measurement], float | None]) -> Metric:
    return Metric(name, title, unit, value, _worst_of(value), compared=False)


def _of_writes(value: Callable[[Measurement], float]) -> Callable[[Measurement], float | None]:
    return lambda boot: value(boot) if boot.written and boot.device.get("writes") else None


def _kib_a_write(boot: Measurement) -> float:
    return boot.device["written"] / boot.device["writes"] / 1024


RatioOf = Callable[[Sequence[float], Sequence[float]], stats.Ratio | None]
"""How a ratio is taken of the first variant's figures and another one's, pair by pair."""

NEAR = 0.01
"""What counts as about the same where ratios are exact."""

MAIN = "mb_per_s"
"""The figure that decides when there are enough pairs."""

SHORT = (
    _mean(MAIN, "bandwidth", "MB/s", lambda boot: boot.outcome.mb_per_s, of_step=False),
    *(_latency(percent) for percent in PERCENTILES),
    _mean("peak_dirty", "peak dirty", "MB", lambda boot: boot.peak_dirty_pages * PAGE / 1e6),
    _worst("cached_after", "cached after", "MB", lambda boot: boot.cached_pages * PAGE / 1e6),
    _worst("counter_after", "counter after", "pages", lambda boot: boot.counter_after and abs(boot.counter_after)),
)
"""The main table, and all that make run has."""

COSTS = (
    _mean("switches", "switches", "1/s", lambda boot: boot.used["context_switches"] * 1e3 / boot.outcome.runtime_ms),
    _mean("job_cpu", "CPU of jobs", "s", lambda boot: boot.outcome.cpu_seconds, of_step=False),
    _mean("worker_cpu", "CPU of workers", "s", lambda boot: boot.used.get("worker_seconds")),
    _mean("peak_cached", "peak cached", "MB", lambda boot: boot.peak_cached_pages * PAGE / 1e6),
    _mean("amplification", "device/written", "", _of_writes(lambda boot: boot.device["written"] / boot.written)),
    _mean("write_size", "write of device", "KiB", _of_writes(_kib_a_write)),
)
"""What a load cost: the second table."""


def _work(boot: Measurement) -> float | None:
    if "worker_seconds" not in boot.used:
        return None
    return 1e6 * (boot.used["load_seconds"] + boot.used["worker_seconds"]) / (boot.moved / 2**20)


WORK = _mean("work", "work", "1000/MiB", _work)
"""Where a nanosecond is an instruction: those of fio and of the kernel's workers, for each MiB that fio moved."""

WITH_SYNC = _mean(
    "with_sync",
    "with sync",
    "MB/s",
    lambda boot: boot.written / 1e3 / (boot.outcome.runtime_ms + 1e3 * boot.sync_seconds) if boot.written else None,
)
"""Where a load fits into memory: what it wrote over the time until all of it had reached the device."""


def _counted(
    name: str, title: str, unit: str, value: Callable[[Counts], float], worst: bool = False
) -> Metric:
    def of_boot(boot: Measurement) -> float | None:
        return value(boot.counts) if boot.counts else None

    def highest(boots: Sequence[Measurement]) -> float:
        return max(of_boot(boot) or 0.0 for boot in boots)

    return Metric(name, title, unit, of_boot, highest if worst else _mean_of(of_boot), compared=not worst)


COUNTS = (
    _counted("bios", "bios", "", lambda counts: counts.bios),
    _counted("runs", "worker runs", "", lambda counts: counts.runs),
    _counted("bios_per_run", "bios/run", "", lambda counts: counts.bios / counts.runs),
    _counted("wait_p50", "wait p50", "us", lambda counts: counts.percentile_us(50)),
    _counted("wait_p99", "wait p99", "us", lambda counts: counts.percentile_us(99)),
    _counted("wait_max", "wait max", "us", lambda counts: counts.percentile_us(100), worst=True),
)
"""What the kernel counted, where a load asked for it: the third table."""

FULL = (*SHORT, *COSTS, *COUNTS)


@dataclass(frozen=True)
class Cell:
    """One metric of one scenario and mode."""

    metric: Metric
    values: dict[str, float]
    """variant -> the figure over all boots; variants for which there is one"""
    boots: dict[str, list[float]]
    """variant -> the figure of each boot, in the order of the pairs"""
    ratios: dict[str, stats.Ratio]
    """variant -> its ratio to the first variant"""


@dataclass(frozen=True)
class Group:
    """All figures of one scenario in one mode in one place."""

    scenario: str
    mode: str
    place: str
    variants: tuple[str, ...]
    pairs: int
    cells: list[Cell]

    def cell(self, name: str) -> Cell:
        """The cell of a metric."""
        return next(cell for cell in self.cells if cell.metric.name == name)

    @property
    def key(self) -> tuple[str, str, str]:
        """What it holds the figures of."""
        return self.scenario, self.place, self.mode


def summarize(
    measurements: Sequence[Measurement],
    metrics: Sequence[Metric] = SHORT,
    partial: bool = False,
    ratio: RatioOf = stats.paired_ratio,
) -> list[Group]:
    """Group by place, scenario and mode, in the order in which they come.

    Where not all boots came through, partial lets ratios be taken of the pairs that are whole.
    """
    variants = tuple(dict.fromkeys(m.variant for m in measurements))
    places = list(dict.fromkeys(m.place for m in measurements))
    scenarios = list(dict.fromkeys(m.scenario for m in measurements))
    modes = list(dict.fromkeys(m.mode for m in measurements))
    groups = []
    for place in places:
        for scenario in scenarios:
            for mode in modes:
                chosen = [m for m in measurements if (m.place, m.scenario, m.mode) == (place, scenario, mode)]
                if chosen:
                    groups.append(_group(chosen, variants, metrics, partial, ratio))
    return groups


def _group(
    chosen: Sequence[Measurement],
    variants: tuple[str, ...],
    metrics: Sequence[Metric],
    partial: bool,
    ratio: RatioOf,
) -> Group:
    one = chosen[0]
    by_variant = {v: {m.pair: m for m in sorted(chosen, key=lambda m: m.pair) if m.variant == v} for v in variants}
    if not partial and len({tuple(boots) for boots in by_variant.values()}) != 1:
        raise ValueError(f"{one.scenario}, {one.mode}: the boots are not paired")
    cells = [_cell(metric, by_variant, ratio) for metric in metrics if one.first or not metric.of_step]
    pairs = len(set.intersection(*(set(boots) for boots in by_variant.values())))
    return Group(one.scenario, one.mode, one.place, variants, pairs, cells)


def _cell(metric: Metric, by_variant: dict[str, dict[int, Measurement]], ratio: RatioOf) -> Cell:
    figures: dict[str, dict[int, float]] = {}
    values: dict[str, float] = {}
    for variant, boots in by_variant.items():
        found = {pair: metric.of_boot(m) for pair, m in boots.items()}
        figures[variant] = {pair: value for pair, value in found.items() if value is not None}
        if figures[variant]:
            values[variant] = metric.of_all([boots[pair] for pair in figures[variant]])
    base, *others = by_variant
    ratios = {}
    for variant in others if metric.compared else []:
        pairs = [pair for pair in figures[base] if pair in figures[variant]]
        if pairs:
            taken = ratio(*([figures[v][pair] for pair in pairs] for v in (base, variant)))
            if taken:
                ratios[variant] = taken
    return Cell(metric, values, {v: list(of_pairs.values()) for v, of_pairs in figures.items()}, ratios)


def verdicts(groups: Sequence[Group], of: str = "boots") -> list[str]:
    """What the intervals show, in sentences that do not claim more than they do."""
    lines = []
    for base, variant in dict.fromkeys((group.variants[0], v) for group in groups for v in group.variants[1:]):
        lines += _verdicts(groups, base, variant, of)
    return lines or ["One variant alone has nothing to be compared with."]


def _verdicts(groups: Sequence[Group], base: str, variant: str, of: str) -> list[str]:
    name = f"{title(variant)}/{title(base)}"
    compared = [
        (group, cell, cell.ratios[variant])
        for group in groups
        for cell in group.cells
        if variant in cell.ratios and cell.ratios[variant].known
    ]
    if compared and all(ratio.exact for _, _, ratio in compared):
        near = sum(abs(ratio.estimate - 1) <= NEAR for _, _, ratio in compared)
        return [
            f"{name}, counted, not timed: another boot gives the same digits, so a ratio has no interval."
            f" {near} of {len(compared)} are within {100 * NEAR:.0f} % of 1. How far the others depend on the moment"
            " at which a load begins is seen with --pairs."
        ]
    if not compared:
        return [f"{name}: one pair of {of} shows no difference and no equality: take more pairs."]
    shown = [item for item in compared if item[2].shown]
    pairs = max(ratio.pairs for _, _, ratio in compared)
    lines = [
        f"{name} over {pairs} pairs of {of}, 95 % intervals: {stats.NO_DIFFERENCE} in"
        f" {len(compared) - len(shown)} of {len(compared)} comparisons."
        f" By chance alone about {len(compared) * (1 - stats.CONFIDENCE):.0f} would exclude 1."
    ]
    places = {group.place for group in groups}
    for group, cell, ratio in shown:
        mode = f", {group.mode}" if group.mode != KERNEL else ""
        place = f", {group.place}" if len(places) > 1 else ""
        what = f"{group.scenario}{mode}{place}, {cell.metric.title}"
        lines.append(f"{what}: {ratio.verdict(title(variant))}, {ratio}")
    return lines
