# SPDX-License-Identifier: GPL-2.0
"""The plots of the report, as SVG that needs no other file."""

import io
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib

matplotlib.use("svg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .catalogue import SCALE
from .contenders import CORES, KERNEL, title
from .results import COUNTED, DIRTY, Measurement, PAGE, READ, WRITTEN
from .stats import Ratio
from .summary import Compared, Group, MAIN, comparisons

COLOURS = {
    "c": "#0072b2",
    "rust": "#d55e00",
    "kernel": "#444444",
    "buffered": "#0072b2",
    "dontcache": "#d55e00",
    "direct": "#999999",
}
"""Told apart by everyone, and the first two in grey, too."""

STYLES = {"buffered": "--", "dontcache": "-", "direct": ":", KERNEL: "-"}

COLUMNS = 4
"""How many plots stand side by side."""

TITLE_WIDTH = 32
"""Letters of a plot's title that do not run into its neighbour's."""

STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
}


Panel = tuple[str, str]
"""A scenario, or a section of one, and where it ran."""

Curve = Callable[[Measurement], tuple[list[float], list[float]]]
"""What a measurement has to show over time: seconds, and a value for each."""


@dataclass(frozen=True)
class Drawing:
    """What all plots of a report are made from."""

    groups: Sequence[Group]
    measurements: Sequence[Measurement]
    panels: dict[Panel, str]
    """each with its title"""
    variants: tuple[str, ...]
    beside: Sequence[Group] = ()
    """DONTCACHE beside buffered, where both were run"""

    def steps(self) -> dict[Panel, str]:
        """One panel for each step: what was sampled is the same for all its sections."""
        first = {(m.scenario, m.place) for m in self.measurements if m.first}
        section = re.compile(": [^,]*")
        return {panel: section.sub("", text) for panel, text in self.panels.items() if panel in first}

    def of(self, panel: Panel) -> list[Measurement]:
        """What was measured there."""
        return [m for m in self.measurements if (m.scenario, m.place) == panel]

    def modes(self) -> list[str]:
        """The modes that a plot over time or of latency has. On one kernel they stand in the variants' place."""
        return [mode for mode in ("buffered", "dontcache", KERNEL) if any(m.mode == mode for m in self.measurements)]


def draw(
    groups: Sequence[Group],
    beside: Sequence[Group],
    measurements: Sequence[Measurement],
    titles: dict[str, str],
    names: Sequence[str],
) -> dict[str, str]:
    """The plots of these names for which there is anything: name -> an <svg> element."""
    places = {group.place for group in groups}
    panels = {}
    for group in groups:
        text = titles.get(group.scenario, group.scenario)
        text = f"{text}, {group.place}" if len(places) > 1 else text
        panels[group.scenario, group.place] = textwrap.fill(text, TITLE_WIDTH)
    drawing = Drawing(groups, measurements, panels, groups[0].variants if groups else (), beside)
    there = [name for name in names if name not in NEEDS or any(NEEDS[name](m) for m in measurements)]
    there = [name for name in there if name != "beside" or any(group.cell(MAIN).ratios for group in beside)]
    with plt.rc_context(STYLE):
        return {name: _svg(name, PLOTS[name](drawing)) for name in there}


def draw_beside(loads: Mapping[str, Sequence[Sequence[float] | None]]) -> str:
    """Ratios to buffered of each load: DONTCACHE with C, with Rust, and O_DIRECT; each estimate, low and high, or None."""
    with plt.rc_context(STYLE):
        figure, (axes,) = _panels(["ratio"], 0.9 + 0.4 * len(loads))
        for place, ratios in enumerate(loads.values()):
            for core, offset, ratio in zip((*CORES, SCALE), (-0.22, 0, 0.22), ratios, strict=True):
                if not ratio:
                    continue
                estimate, low, high = ratio
                face = "white" if low <= 1 <= high else COLOURS[core]
                axes.plot([low, high], [place + offset] * 2, "-", color=COLOURS[core], linewidth=1.6)
                axes.plot([estimate], [place + offset], "o", color=COLOURS[core], markerfacecolor=face, markersize=5)
        _beside_axes(axes, list(loads))
        _legend(figure, variants=(*CORES, SCALE))
        return _svg("beside", figure)


def _beside_axes(axes: Axes, texts: Sequence[str]) -> None:
    axes.axvline(1, color="#222222", linewidth=0.9)
    axes.set_xscale("log")
    _ratio_ticks(axes)
    axes.set_ylim(len(texts) - 0.5, -0.5)
    axes.set_yticks(range(len(texts)), texts)
    axes.set_xlabel("bytes a second until they are on the drive, DONTCACHE/buffered and O_DIRECT/buffered")


def _svg(name: str, figure: Figure) -> str:
    text = io.StringIO()
    # A fixed salt and no date: the same figures make the same file.
    with plt.rc_context({"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg") :]


def _panels(what: Sequence[object], height: float, columns: int = COLUMNS) -> tuple[Figure, list[Axes]]:
    """A plot for each, in rows; height is a row's."""
    columns = max(1, min(columns, len(what)))
    rows = max(1, -(-len(what) // columns))
    figure, axes = plt.subplots(rows, columns, figsize=(11, height * rows), squeeze=False)
    flat = [panel for row in axes for panel in row]
    for panel in flat[len(what) :]:
        panel.set_axis_off()
    for row in axes[:, 0]:
        row.set_gid("first")
    return figure, flat[: max(1, len(what))]


def _ylabel(panels: Sequence[Axes], text: str) -> None:
    """A label on the first plot of each row."""
    for axes in panels:
        if axes.get_gid() == "first":
            axes.set_ylabel(text)


def _legend(
    figure: Figure, modes: Sequence[str] = (), extra: Sequence[Line2D] = (), variants: Sequence[str] = CORES
) -> None:
    names = {variant: "O_DIRECT" if variant == SCALE else title(variant) for variant in variants}
    handles = [Line2D([], [], color=COLOURS[variant], linewidth=3, label=name) for variant, name in names.items()]
    handles += [Line2D([], [], color="#444444", linestyle=STYLES[mode], label=mode) for mode in modes if mode != KERNEL]
    handles += extra
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def _bandwidth(drawing: Drawing) -> Figure:
    measured = {(group.scenario, group.place) for group in drawing.groups if group.cell(MAIN).values}
    shown = {panel: text for panel, text in drawing.panels.items() if panel in measured}
    figure, panels = _panels(list(shown), 3.0)
    width = 0.76 / max(1, len(drawing.variants))
    for axes, (panel, text) in zip(panels, shown.items(), strict=True):
        chosen = [group for group in drawing.groups if (group.scenario, group.place) == panel]
        for index, variant in enumerate(drawing.variants):
            places = np.arange(len(chosen)) + (index - (len(drawing.variants) - 1) / 2) * width
            cells = [group.cell(MAIN) for group in chosen]
            axes.bar(
                places, [cell.values.get(variant, 0) for cell in cells], width * 0.9, color=COLOURS[variant], alpha=0.75
            )
            for place, cell in zip(places, cells, strict=True):
                boots = cell.boots.get(variant, [])
                axes.plot([place] * len(boots), boots, ".", color="#222222", markersize=4)
        axes.set_xticks(range(len(chosen)), [title(group.mode) for group in chosen])
        axes.grid(visible=False, axis="x")
        axes.set_title(text)
    _ylabel(panels, "MB/s (10^6 bytes a second), second half")
    one_boot = Line2D([], [], color="#222222", marker=".", linestyle="", label="one boot")
    _legend(figure, extra=[one_boot], variants=drawing.variants)
    return figure


def _latency(drawing: Drawing) -> Figure:
    """How long it took over the share of those that took longer: tails to the right."""
    figure, panels = _panels(list(drawing.panels), 3.2)
    modes = drawing.modes()
    for axes, (panel, text) in zip(panels, drawing.panels.items(), strict=True):
        fewest = 1.0
        for mode in modes:
            for variant in drawing.variants:
                chosen = (m for m in drawing.of(panel) if (m.mode, m.variant) == (mode, variant))
                merged = sum((Counter(m.outcome.latency) for m in chosen), Counter())
                if not merged:
                    continue
                keys = np.array(sorted(merged))
                counts = np.array([merged[int(key)] for key in keys])
                beyond = 1 - (np.cumsum(counts) - counts) / counts.sum()
                fewest = min(fewest, float(beyond[-1]))
                colour = COLOURS[variant]
                axes.plot(beyond, keys / 1e6, STYLES[mode], color=colour, linewidth=1.3, drawstyle="steps-post")
        axes.set_title(text)
        axes.set_xlabel("percentile")
        if fewest == 1.0:
            continue  # direct writes only, or one request
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(1, fewest)
        ticks = [(0.5, "50"), (0.1, "90"), (0.01, "99"), (0.001, "99.9"), (0.0001, "99.99")]
        ticks = [tick for tick in ticks if tick[0] >= fewest]
        axes.set_xticks([place for place, _ in ticks], [text for _, text in ticks])
        axes.minorticks_off()
    _ylabel(panels, "latency, ms")
    _legend(figure, modes, variants=drawing.variants)
    return figure


def _pages(column: int) -> Curve:
    """A column of pages over time, in MB."""
    return lambda m: ([row[0] for row in m.samples], [row[column] * PAGE / 1e6 for row in m.samples])


def rate(*columns: int, unit: float = 1) -> Curve:
    """How columns together grow in a second, over windows of half a second, shorter ones where the run is short."""

    def curve(m: Measurement) -> tuple[list[float], list[float]]:
        seconds, rates = [], []
        begin = m.samples[0]
        window = 0.5 if m.samples[-1][0] > 1 else m.samples[-1][0] / 10
        for row in m.samples[1:]:
            if row[0] - begin[0] >= window:
                grown = sum(row[column] - begin[column] for column in columns)
                seconds.append((row[0] + begin[0]) / 2)
                rates.append(grown / unit / (row[0] - begin[0]))
                begin = row
        return seconds, rates

    return curve


def _over_time(label: str, curve: Curve, only: Sequence[str] = ()) -> Callable[[Drawing], Figure]:
    """What was sampled while fio ran, one thin line a boot."""

    def draw(drawing: Drawing) -> Figure:
        steps, modes = drawing.steps(), only or drawing.modes()
        figure, panels = _panels(list(steps), 2.5)
        for axes, (panel, text) in zip(panels, steps.items(), strict=True):
            for m in drawing.of(panel):
                if m.mode in modes:
                    axes.plot(*curve(m), STYLES[m.mode], color=COLOURS[m.variant], linewidth=0.9, alpha=0.8)
            axes.set_title(text)
            axes.set_xlabel("seconds")
            axes.set_ylim(bottom=0)
        _ylabel(panels, label)
        _legend(figure, modes, variants=drawing.variants)
        return figure

    return draw


def _beside(drawing: Drawing) -> Figure:
    """DONTCACHE over buffered: a row a load, a colour a core, and another one for O_DIRECT."""
    groups = [group for group in drawing.beside if group.cell(MAIN).ratios]
    panels = list(dict.fromkeys((group.scenario, group.place) for group in groups))
    lines = list(dict.fromkeys((group.mode, group.variants[-1]) for group in groups))
    figure, (axes,) = _panels(["ratio"], 1.0 + 0.4 * max(len(panels), 1))
    for one in (one for one in comparisons(drawing.beside) if one.metric.name == MAIN):
        offset = (lines.index((one.group.mode, one.variant)) - (len(lines) - 1) / 2) * 0.7 / len(lines)
        place = panels.index((one.group.scenario, one.group.place)) + offset
        colour = COLOURS[one.variant if one.variant == SCALE else one.group.mode]
        _interval(axes, place, one, colour, colour)
    _beside_axes(axes, [f"{scenario}, {place}" for scenario, place in panels])
    _legend(figure, variants=list(dict.fromkeys(mode if mode == SCALE else core for core, mode in lines)))
    return figure


def _ratios(drawing: Drawing) -> Figure:
    """Every ratio with its interval, beside the line at which there is no difference."""
    compared = [one for one in comparisons(drawing.groups) if isinstance(one.ratio, Ratio)]
    metrics = list(dict.fromkeys(one.metric for one in compared))
    keys = list(dict.fromkeys((one.group.key, one.variant) for one in compared))
    places, others = {key[1] for key, _ in keys}, {variant for _, variant in keys}
    figure, panels = _panels(metrics, 0.9 + 0.28 * max(len(keys), 1), columns=6)
    texts = []
    for (scenario, place, mode), variant in keys:
        place, other = place if len(places) > 1 else "", title(variant) if len(others) > 1 else ""
        texts.append(", ".join(filter(None, (scenario, place, title(mode), other))))
    for axes, metric in zip(panels, metrics, strict=False):
        for one in compared:
            if one.metric == metric:
                colour = COLOURS[one.variant]
                _interval(axes, keys.index((one.group.key, one.variant)), one, colour, "#666666")
        axes.axvline(1, color="#222222", linewidth=0.9)
        axes.set_xscale("log")
        _ratio_ticks(axes)
        axes.set_title(metric.title)
        axes.set_ylim(len(keys) - 0.5, -0.5)
        axes.set_yticks(range(len(keys)), texts if axes.get_gid() == "first" else [""] * len(keys))
        base = title(drawing.variants[0])
        axes.set_xlabel(f"{title(keys[0][1]) if len(others) == 1 else 'variant'}/{base}")
    return figure


def _interval(axes: Axes, place: float, one: Compared, colour: str, dull: str) -> None:
    """Filled where it stands out among all comparisons of its kind, dull where it shows nothing at all."""
    ratio = one.ratio
    colour = colour if ratio.shown else dull
    axes.plot([ratio.low, ratio.high], [place, place], "-", color=colour, linewidth=1.6)
    face = colour if one.outstanding else "white"
    axes.plot([ratio.estimate], [place], "o", color=colour, markerfacecolor=face, markersize=4.5)


def _ratio_ticks(axes: Axes) -> None:
    """Round numbers on both sides of 1, whatever the width."""
    low, high = axes.get_xlim()
    reach = min(max(1 / low, high, 1.05), 40.0)
    axes.set_xlim(1 / reach, reach)
    steps = next((s for s in ([1.02], [1.05], [1.1], [1.25], [1.5], [2.0], [2.0, 4.0], [3.0, 9.0]) if reach <= s[-1] ** 2), [3.0, 9.0])
    marks = sorted({1.0, *steps, *(1 / step for step in steps)})
    marks = [mark for mark in marks if 1 / reach <= mark <= reach]
    axes.set_xticks(marks, [f"{mark:.2f}".rstrip("0").rstrip(".") for mark in marks])
    axes.minorticks_off()


PLOTS: dict[str, Callable[[Drawing], Figure]] = {
    "beside": _beside,
    "ratios": _ratios,
    "bandwidth": _bandwidth,
    "latency": _latency,
    "dirty": _over_time("dirty, MB", _pages(DIRTY)),
    "counter": _over_time("DONTCACHE counter, MB", _pages(COUNTED), ["dontcache"]),
    "throughput": _over_time("device, MB/s", rate(READ, WRITTEN, unit=1e6)),
}

NEEDS: dict[str, Callable[[Measurement], object]] = {
    "bandwidth": lambda m: m.half_ms,
    "counter": lambda m: m.mode == "dontcache" and any(row[COUNTED] for row in m.samples),
    "throughput": lambda m: m.device,
}
"""What a plot takes of one measurement at least, to be drawn at all."""
