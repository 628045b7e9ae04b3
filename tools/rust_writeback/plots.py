# SPDX-License-Identifier: GPL-2.0
"""The plots of the report, as SVG that needs no other file."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import matplotlib

matplotlib.use("svg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from . import histogram
from .results import COUNTED, DIRTY, PAGE, Measurement
from .summary import CORES, NAMES, Cell, Group

COLOURS = {"c": "#0072b2", "rust": "#d55e00"}
"""Told apart by everyone, and in grey, too."""

STYLES = {"buffered": "--", "dontcache": "-", "direct": ":"}

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


def draw(groups: Sequence[Group], measurements: Sequence[Measurement], titles: dict[str, str]) -> dict[str, str]:
    """Every plot: its name -> an <svg> element."""
    with plt.rc_context(STYLE):
        return {
            "ratios": _svg("ratios", _ratios(groups)),
            "bandwidth": _svg("bandwidth", _bandwidth(groups, titles)),
            "latency": _svg("latency", _latency(measurements, titles)),
            "dirty": _svg("dirty", _over_time(measurements, titles)),
        }


def draw_curves(offsets: Sequence[float], curves: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """What a write costs over where it lands: a panel for each title, a line for each core."""
    with plt.rc_context(STYLE):
        figure, panels = _panels(len(curves), 3.2)
        for axes, (title, lines) in zip(panels, curves.items(), strict=True):
            for core, width in zip(CORES, (3.5, 1.2), strict=True):  # equal lines are both seen
                axes.plot(offsets, lines[core], ".-", color=COLOURS[core], linewidth=width, markersize=2.5 * width)
            axes.set_ylim(bottom=0)
            axes.set_xticks(np.linspace(0, max(offsets) + 1, 5))
            axes.set_title(title)
            axes.set_xlabel("offset in the folio, KiB")
        panels[0].set_ylabel("instructions of a pwrite of 1 KiB")
        _legend(figure)
        return _svg("overwrite", figure)


def _svg(name: str, figure: Figure) -> str:
    text = io.StringIO()
    # A fixed salt and no date: the same figures make the same file.
    with plt.rc_context({"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg") :]


def _panels(count: int, height: float) -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(1, count, figsize=(11, height), squeeze=False)
    return figure, list(axes[0])


def _legend(figure: Figure, modes: Sequence[str] = (), extra: Sequence[Line2D] = ()) -> None:
    handles = [Line2D([], [], color=COLOURS[core], linewidth=3, label=NAMES[core]) for core in CORES]
    handles += [Line2D([], [], color="#444444", linestyle=STYLES[mode], label=mode) for mode in modes]
    handles += extra
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def _bandwidth(groups: Sequence[Group], titles: dict[str, str]) -> Figure:
    figure, panels = _panels(len(titles), 3.0)
    for axes, scenario in zip(panels, titles, strict=True):
        chosen = [group for group in groups if group.scenario == scenario]
        for index, core in enumerate(CORES):
            places = np.arange(len(chosen)) + (index - 0.5) * 0.38
            cells = [group.cell("mb_per_s") for group in chosen]
            axes.bar(places, [cell.values[core] for cell in cells], 0.34, color=COLOURS[core], alpha=0.75)
            for place, cell in zip(places, cells, strict=True):
                boots = cell.boots[core]
                axes.plot([place] * len(boots), boots, ".", color="#222222", markersize=4)
        axes.set_xticks(range(len(chosen)), [group.mode for group in chosen])
        axes.grid(visible=False, axis="x")
        axes.set_title(titles[scenario])
    panels[0].set_ylabel("MB/s (10^6 bytes a second)")
    _legend(figure, extra=[Line2D([], [], color="#222222", marker=".", linestyle="", label="one boot")])
    return figure


def _latency(measurements: Sequence[Measurement], titles: dict[str, str]) -> Figure:
    """Latency over the share of requests that took longer: tails to the right."""
    figure, panels = _panels(len(titles), 3.2)
    modes = [mode for mode in ("buffered", "dontcache") if any(m.mode == mode for m in measurements)]
    for axes, scenario in zip(panels, titles, strict=True):
        fewest = 1.0
        for mode in modes:
            for core in CORES:
                merged = histogram.merge(
                    m.outcome.latency for m in measurements if (m.scenario, m.mode, m.core) == (scenario, mode, core)
                )
                if not merged:
                    continue
                keys = np.array(sorted(merged))
                counts = np.array([merged[int(key)] for key in keys])
                beyond = 1 - (np.cumsum(counts) - counts) / counts.sum()
                fewest = min(fewest, float(beyond[-1]))
                axes.plot(beyond, keys / 1e6, STYLES[mode], color=COLOURS[core], linewidth=1.3, drawstyle="steps-post")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(1, fewest)
        ticks = [(0.5, "50"), (0.1, "90"), (0.01, "99"), (0.001, "99.9"), (0.0001, "99.99")]
        ticks = [tick for tick in ticks if tick[0] >= fewest]
        axes.set_xticks([place for place, _ in ticks], [text for _, text in ticks])
        axes.minorticks_off()
        axes.set_title(titles[scenario])
        axes.set_xlabel("percentile")
    panels[0].set_ylabel("completion latency, ms")
    _legend(figure, modes)
    return figure


def _over_time(measurements: Sequence[Measurement], titles: dict[str, str]) -> Figure:
    """What was dirty while fio ran, one thin line a boot; below it the counter."""
    figure, axes = plt.subplots(2, len(titles), figsize=(11, 4.6), squeeze=False, sharex="col")
    modes = [mode for mode in ("buffered", "dontcache") if any(m.mode == mode for m in measurements)]
    for column, scenario in enumerate(titles):
        for m in measurements:
            if m.scenario != scenario or m.mode not in modes:
                continue
            seconds = [row[0] for row in m.samples]
            for row, value in ((0, DIRTY), (1, COUNTED)):
                if row == 1 and m.mode != "dontcache":
                    continue
                pages = np.array([sample[value] for sample in m.samples])
                axes[row][column].plot(
                    seconds, pages * PAGE / 1e6, STYLES[m.mode], color=COLOURS[m.core], linewidth=0.9, alpha=0.8
                )
        axes[0][column].set_title(titles[scenario])
        axes[1][column].set_xlabel("seconds")
        for row in range(2):
            axes[row][column].set_ylim(bottom=0)
    axes[0][0].set_ylabel("dirty, MB")
    axes[1][0].set_ylabel("DONTCACHE counter, MB")
    _legend(figure, modes)
    return figure


def _ratios(groups: Sequence[Group]) -> Figure:
    """Every ratio with its interval, beside the line at which there is no difference."""
    compared = [(group, cell) for group in groups for cell in group.cells if cell.ratio and cell.ratio.pairs > 1]
    names = list(dict.fromkeys(cell.metric.name for _, cell in compared))
    lines = list(dict.fromkeys((group.scenario, group.mode) for group, _ in compared))
    figure, panels = _panels(max(len(names), 1), 0.9 + 0.28 * max(len(lines), 1))
    for axes, name in zip(panels, names, strict=False):
        title = name
        for group, cell in compared:
            if cell.metric.name == name:
                title = cell.metric.title
                _interval(axes, lines.index((group.scenario, group.mode)), cell)
        axes.axvline(1, color="#222222", linewidth=0.9)
        axes.set_xscale("log")
        _ratio_ticks(axes)
        axes.set_title(title)
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.set_yticks(range(len(lines)), [""] * len(lines))
        axes.set_xlabel("Rust/C")
    panels[0].set_yticks(range(len(lines)), [f"{scenario}, {mode}" for scenario, mode in lines])
    return figure


def _interval(axes: Axes, place: int, cell: Cell) -> None:
    ratio = cell.ratio
    assert ratio is not None
    colour = COLOURS["rust"] if ratio.shown else "#666666"
    axes.plot([ratio.low, ratio.high], [place, place], "-", color=colour, linewidth=1.6)
    axes.plot([ratio.estimate], [place], "o", color=colour, markersize=4.5)


def _ratio_ticks(axes: Axes) -> None:
    """Round numbers on both sides of 1, whatever the width."""
    low, high = axes.get_xlim()
    reach = min(max(1 / low, high, 1.05), 10.0)
    axes.set_xlim(1 / reach, reach)
    steps = next((s for s in ([1.02], [1.05], [1.1], [1.25], [1.5], [2.0], [2.0, 4.0], [3.0, 9.0]) if reach <= s[-1] ** 2), [3.0, 9.0])
    marks = sorted({1.0, *steps, *(1 / step for step in steps)})
    marks = [mark for mark in marks if 1 / reach <= mark <= reach]
    axes.set_xticks(marks, [f"{mark:.2f}".rstrip("0").rstrip(".") for mark in marks])
    axes.minorticks_off()
