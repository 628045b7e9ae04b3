# SPDX-License-Identifier: GPL-2.0
"""The plots of the report, as SVG that needs no other file."""

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import matplotlib

matplotlib.use("svg")

import numpy as np
import numpy.typing
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .catalogue import SCALE
from .contenders import CORES, KERNEL, title
from .results import DIRTY, Measurement, PAGE, READ, WRITTEN
from .summary import Group, MAIN

COLOURS = {
    "c": "#0072b2",
    "rust": "#d55e00",
    "kernel": "#444444",
    "buffered": "#0072b2",
    "dontcache": "#d55e00",
    "direct": "#999999",
}
"""Told apart by everyone, and the first two in grey, too."""

STYLES = {"buffered": "--", "dontcache": "-", KERNEL: "-"}

COLUMNS = 4
"""How many plots stand side by side."""

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

Panel = tuple[str, list[Measurement]]
"""A title, and what was measured of a load in one place."""

Floats = np.typing.NDArray[np.float64]

Interval = Sequence[float]
"""A ratio's estimate, and the ends of its interval."""


def draw(measurements: Sequence[Measurement], beside: Sequence[Group]) -> dict[str, str]:
    """The plots for which there is anything: name -> an <svg> element. Latency and dirty memory are not those of O_DIRECT."""
    found = {}
    if loads := _ratios(beside):
        names = sorted({name for ratios in loads.values() for name in ratios}, key=list(COLOURS).index)
        found["beside"] = draw_beside({text: [ratios.get(name) for name in names] for text, ratios in loads.items()}, names)
    panels: dict[tuple[str, str], list[Measurement]] = {}
    for m in measurements:
        if m.mode != SCALE:
            panels.setdefault((m.scenario, m.place), []).append(m)
    if panels:
        several = len({place for _, place in panels}) > 1
        of_sections = [(f"{scenario}, {place}" if several else scenario, part) for (scenario, place), part in panels.items()]
        # What was sampled is the same for all sections of a step.
        of_steps = [panel for panel in of_sections if panel[1][0].first]
        found["latency"] = _in_panels("latency", of_sections, _latency, 3.2, ("percentile", "latency, ms"))
        if any(m.device for m in measurements):
            found["throughput"] = _in_panels("throughput", of_steps, _over_time(_moved), 2.5, ("seconds", "device, MB/s"))
        found["dirty"] = _in_panels("dirty", of_steps, _over_time(_dirty), 2.5, ("seconds", "dirty, MB"))
    return found


def _ratios(beside: Sequence[Group]) -> dict[str, dict[str, Interval]]:
    """By load and core: DONTCACHE over buffered; and as O_DIRECT that of the last core."""
    loads: dict[str, dict[str, Interval]] = {}
    for group in beside:
        for mode, ratio in group.cells[MAIN].ratios.items():
            name = SCALE if mode == SCALE else group.mode
            loads.setdefault(f"{group.scenario}, {group.place}", {})[name] = (ratio.estimate, ratio.low, ratio.high)
    return loads


def draw_beside(loads: Mapping[str, Sequence[Interval | None]], names: Sequence[str] = (*CORES, SCALE)) -> str:
    """Ratios to buffered of each load, in the order of the names: DONTCACHE with each core, and O_DIRECT."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(11, 0.9 + 0.4 * len(loads)))
        for place, ratios in enumerate(loads.values()):
            for index, (name, ratio) in enumerate(zip(names, ratios, strict=True)):
                if not ratio:
                    continue
                estimate, low, high = ratio
                line = place + 0.22 * (index - (len(names) - 1) / 2)
                face = "white" if low <= 1 <= high else COLOURS[name]
                axes.plot([low, high], [line, line], "-", color=COLOURS[name], linewidth=1.6)
                axes.plot([estimate], [line], "o", color=COLOURS[name], markerfacecolor=face, markersize=5)
        axes.axvline(1, color="#222222", linewidth=0.9)
        axes.set_xscale("log")
        _ratio_ticks(axes)
        axes.set_ylim(len(loads) - 0.5, -0.5)
        axes.set_yticks(range(len(loads)), list(loads))
        axes.set_xlabel("bytes a second until they are on the drive, DONTCACHE/buffered and O_DIRECT/buffered")
        _legend(figure, names)
        return _svg("beside", figure)


def _svg(name: str, figure: Figure) -> str:
    text = io.StringIO()
    # A fixed salt and no date: the same figures make the same file.
    with plt.rc_context({"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg") :]


def _legend(figure: Figure, variants: Sequence[str], modes: Sequence[str] = ()) -> None:
    names = {variant: "O_DIRECT" if variant == SCALE else title(variant) for variant in variants}
    handles = [Line2D([], [], color=COLOURS[variant], linewidth=3, label=name) for variant, name in names.items()]
    handles += [Line2D([], [], color="#444444", linestyle=STYLES[mode], label=mode) for mode in modes if mode != KERNEL]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def _in_panels(
    name: str,
    panels: Sequence[Panel],
    fill: Callable[[Axes, list[Measurement]], None],
    height: float,
    labels: tuple[str, str],
) -> str:
    """A plot for each panel, in rows of this height."""
    with plt.rc_context(STYLE):
        columns = min(COLUMNS, len(panels))
        rows = -(-len(panels) // columns)
        figure, grid = plt.subplots(rows, columns, figsize=(11, height * rows), squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        for axes, (text, part) in zip(grid.flat, panels, strict=False):
            fill(axes, part)
            axes.set_title(text)
            axes.set_xlabel(labels[0])
        for axes in grid[:, 0]:
            axes.set_ylabel(labels[1])
        whole = [m for _, part in panels for m in part]
        _legend(figure, list(dict.fromkeys(m.variant for m in whole)), list(dict.fromkeys(m.mode for m in whole)))
        return _svg(name, figure)


def _latency(axes: Axes, part: list[Measurement]) -> None:
    """How long it took over the share of those that took longer: tails to the right."""
    fewest = 1.0
    for mode, variant in dict.fromkeys((m.mode, m.variant) for m in part):
        merged = sum((m.outcome.latency for m in part if (m.mode, m.variant) == (mode, variant)), Counter[int]())
        keys = np.array(sorted(merged))
        counts = np.array([merged[int(key)] for key in keys])
        beyond = 1 - (np.cumsum(counts) - counts) / counts.sum()
        fewest = min(fewest, float(beyond[-1]))
        axes.plot(beyond, keys / 1e6, STYLES[mode], color=COLOURS[variant], linewidth=1.3, drawstyle="steps-post")
    if fewest == 1.0:
        return  # one request has no percentiles
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, fewest)
    ticks = [(0.5, "50"), (0.1, "90"), (0.01, "99"), (0.001, "99.9"), (0.0001, "99.99")]
    ticks = [tick for tick in ticks if tick[0] >= fewest]
    axes.set_xticks([place for place, _ in ticks], [text for _, text in ticks])
    axes.minorticks_off()


def _over_time(curve: Callable[[Measurement], tuple[Floats, Floats]]) -> Callable[[Axes, list[Measurement]], None]:
    """What was sampled while fio ran, one thin line a boot."""

    def fill(axes: Axes, part: list[Measurement]) -> None:
        for m in part:
            axes.plot(*curve(m), STYLES[m.mode], color=COLOURS[m.variant], linewidth=0.9, alpha=0.8)
        axes.set_ylim(bottom=0)

    return fill


def _dirty(m: Measurement) -> tuple[Floats, Floats]:
    """The dirty pages, in MB."""
    samples = np.array(m.samples)
    return samples[:, 0], samples[:, DIRTY] * PAGE / 1e6


def _moved(m: Measurement) -> tuple[Floats, Floats]:
    """What the device read and wrote in a second, by half seconds, or tenths of a short run."""
    samples = np.array(m.samples)
    window = min(0.5, samples[-1, 0] / 10)
    seconds = np.arange(samples[0, 0], samples[-1, 0], window)
    moved = np.interp(seconds, samples[:, 0], samples[:, READ] + samples[:, WRITTEN])
    return seconds[1:], np.diff(moved) / window / 1e6


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
