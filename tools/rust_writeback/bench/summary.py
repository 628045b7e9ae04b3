# SPDX-License-Identifier: GPL-2.0
"""Computes the figures of the tables from measurements: every variant, and its ratio to the first."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean

from . import stats
from .catalogue import COMPARED, SCALE
from .contenders import KERNEL, title
from .results import Measurement, PAGE, PERCENTILES

BUFFERED, DONTCACHE = COMPARED

Value = Callable[[Measurement], float | None]
"""A figure of one boot; None where it does not apply."""


@dataclass(frozen=True)
class Metric:
    """A column: how a figure is taken from one boot and from all boots."""

    name: str
    title: str
    unit: str
    of_boot: Value
    worst: bool = False
    """The highest of all boots is told, and nothing is compared; otherwise the mean is"""
    of_step: bool = True
    """Does it belong to the step as a whole, not to each section?"""


def _latency(percent: float, of_syncs: bool = False) -> Metric:
    name = f"{'sync_' if of_syncs else ''}p{percent:g}"
    return Metric(name, name.replace("_", " "), "ms", lambda boot: boot.percentile_ms(percent, of_syncs), of_step=False)


def _of_writes(value: Callable[[Measurement], float]) -> Value:
    return lambda boot: value(boot) if boot.written and boot.device.get("writes") else None


def _unpaced(value: Callable[[Measurement], float]) -> Value:
    """A paced load has no bandwidth of its own."""
    return lambda boot: None if boot.paced else value(boot)


MAIN = "second_half"
"""The figure of the headline."""

SECOND_HALF = Metric(MAIN, "second half", "MB/s", lambda boot: boot.second_half_mb_per_s, of_step=False)
START = Metric("start", "start", "MB/s", lambda boot: boot.start_mb_per_s, of_step=False)
TO_DURABLE = Metric("mb_per_s", "to durable", "MB/s", _unpaced(lambda boot: boot.outcome.mb_per_s), of_step=False)
PERCENTILES_OF_ALL = tuple(_latency(percent) for percent in PERCENTILES)
PEAK_DIRTY = Metric("peak_dirty", "peak dirty", "MB", lambda boot: boot.peak_dirty_pages * PAGE / 1e6)
SWITCHES = Metric("switches", "switches", "1/MiB", lambda boot: boot.used["context_switches"] / (boot.moved / 2**20))
WRITE_SIZE = Metric(
    "write_size", "write of device", "KiB", _of_writes(lambda boot: boot.device["written"] / boot.device["writes"] / 1024)
)
AMPLIFICATION = Metric("amplification", "device/written", "", _of_writes(lambda boot: boot.device["written"] / boot.written))

SHORT = (
    SECOND_HALF,
    START,
    TO_DURABLE,
    Metric("handed_over", "handed over", "MB/s", _unpaced(lambda boot: boot.outcome.handed_over_mb_per_s), of_step=False),
    *PERCENTILES_OF_ALL,
    PEAK_DIRTY,
    Metric("cached_after", "cached after", "MB", lambda boot: boot.cached_pages * PAGE / 1e6, worst=True),
    Metric(
        "counter_after", "counter after", "pages", lambda boot: boot.counter_after and abs(boot.counter_after), worst=True
    ),
)
"""The main table."""

COSTS = (
    WRITE_SIZE,
    Metric("writes", "writes of device", "1/MiB", _of_writes(lambda boot: boot.device["writes"] / (boot.written / 2**20))),
    AMPLIFICATION,
    Metric("flushes", "flushes", "", _of_writes(lambda boot: boot.device["flushes"])),
    Metric("device_read", "device reads", "MB", _of_writes(lambda boot: boot.device["read"] / 1e6)),
    SWITCHES,
    *(_latency(percent, of_syncs=True) for percent in PERCENTILES[:2]),
    Metric("worker_cpu", "CPU of workers", "s", lambda boot: boot.used.get("worker_seconds")),
    Metric("blocked", "server blocked", "threads*s", lambda boot: boot.blocked_seconds),
)
"""What a load cost: the second table."""

BESIDE = (SECOND_HALF, START, TO_DURABLE, *PERCENTILES_OF_ALL, WRITE_SIZE, AMPLIFICATION, SWITCHES, PEAK_DIRTY)
"""What decides whether somebody uses DONTCACHE: the table of it beside buffered."""

FULL = (*SHORT, *COSTS)


@dataclass(frozen=True)
class Cell:
    """One metric of one scenario and mode."""

    metric: Metric
    values: dict[str, float]
    """variant -> the figure over the boots of whole pairs, where each variant has one"""
    boots: dict[str, list[float]]
    """variant -> the figure of each boot, in the order of the pairs"""
    ratios: dict[str, stats.Ratio]
    """variant -> what it has of the first variant, where there are several pairs and no zero"""


@dataclass(frozen=True)
class Group:
    """All figures of one scenario in one mode in one place."""

    scenario: str
    mode: str
    place: str
    drive: str
    variants: tuple[str, ...]
    cells: dict[str, Cell]
    """by the metric's name"""

    @property
    def key(self) -> tuple[str, str, str]:
        """What it holds the figures of."""
        return self.scenario, self.place, self.mode


def summarize(measurements: Sequence[Measurement], metrics: Sequence[Metric] = SHORT) -> list[Group]:
    """Group by place, scenario and mode, in the order in which they come.

    Where not all boots came through, figures and ratios are those of the pairs that are whole. What a boot lacks is omitted.
    """
    variants = tuple(dict.fromkeys(m.variant for m in measurements))
    orders = (dict.fromkeys(getattr(m, name) for m in measurements) for name in ("place", "scenario", "mode"))
    groups = []
    for key in itertools.product(*orders):
        chosen = [m for m in measurements if (m.place, m.scenario, m.mode) == key]
        if chosen:
            one = chosen[0]
            by_variant = {v: {m.pair: m for m in sorted(chosen, key=lambda m: m.pair) if m.variant == v} for v in variants}
            cells = {metric.name: _cell(metric, by_variant) for metric in metrics if one.first or not metric.of_step}
            groups.append(Group(one.scenario, one.mode, one.place, one.drive, variants, cells))
    return groups


def beside(measurements: Sequence[Measurement], metrics: Sequence[Metric] = BESIDE) -> list[Group]:
    """DONTCACHE beside buffered, and then direct beside buffered, each of pairs of its own.

    They are of the same boots: the modes take the variants' place, and the variants theirs.
    """
    groups = []
    for modes in ((BUFFERED, DONTCACHE), (BUFFERED, SCALE)):
        chosen = [replace(m, variant=m.mode, mode=m.variant) for mode in modes for m in measurements if m.mode == mode]
        keys = [{(m.scenario, m.place, m.mode) for m in chosen if m.variant == mode} for mode in modes]
        groups += summarize([m for m in chosen if (m.scenario, m.place, m.mode) in keys[0] & keys[1]], metrics)
    return groups


def _cell(metric: Metric, by_variant: dict[str, dict[int, Measurement]]) -> Cell:
    figures: dict[str, dict[int, float]] = {}
    for variant, boots in by_variant.items():
        found = {pair: value for pair, m in boots.items() if (value := metric.of_boot(m)) is not None}
        if boots and len(found) == len(boots):
            figures[variant] = found
    if not figures:
        return Cell(metric, {}, {}, {})
    whole = set.intersection(*(set(of_pairs) for of_pairs in figures.values()))
    series = {v: [of_pairs[pair] for pair in sorted(whole or of_pairs)] for v, of_pairs in figures.items()}
    if metric.worst:
        return Cell(metric, {v: max(values) for v, values in series.items()}, series, {})
    # A ratio is one of the means beside it.
    mean = fmean if min(map(min, series.values())) == 0 else geometric_mean
    base = next(iter(by_variant))
    others = [variant for variant in series if variant != base and base in series and whole]
    ratios = {variant: ratio for variant in others if (ratio := stats.paired(series[base], series[variant]))}
    return Cell(metric, {v: mean(values) for v, values in series.items()}, series, ratios)


def verdicts(groups: Sequence[Group], of: str = "boots") -> list[str]:
    """What the intervals show, in sentences that do not claim more than they do."""
    lines = []
    for base, variant in dict.fromkeys((group.variants[0], v) for group in groups for v in group.variants[1:]):
        compared = [
            (group, cell.metric, cell.ratios[variant])
            for group in groups
            for cell in group.cells.values()
            if group.variants[0] == base and variant in cell.ratios
        ]
        lines += _verdicts(compared, f"{title(variant)}/{title(base)}", of)
    return lines or ["One variant alone has nothing to be compared with."]


def _verdicts(compared: Sequence[tuple[Group, Metric, stats.Ratio]], name: str, of: str) -> list[str]:
    """Of a family of comparisons, which is corrected for their number."""
    if not compared:
        return [f"{name}: one pair of {of} shows no difference and no equality: take more pairs."]
    found = list(zip(compared, stats.outstanding([ratio for _, _, ratio in compared]), strict=True))
    only = sum(ratio.shown and not outstanding for (_, _, ratio), outstanding in found)
    out = []
    for (group, metric, ratio), outstanding in found:
        if outstanding:
            mode = f", {title(group.mode)}" if group.mode != KERNEL else ""
            out.append(f"stands out: {group.scenario}{mode}, {group.place}, {metric.title}: {ratio}")
    first = (
        f"{name} over {max(ratio.pairs for _, _, ratio in compared)} pairs of {of}: {len(out)} of {len(compared)}"
        f" comparisons stand out (Holm's method, 5 %), {only} more have a 95 % interval that leaves out equality,"
        f" of which chance alone makes about {len(compared) * (1 - stats.CONFIDENCE):.0f}."
    )
    return [first, *out]
