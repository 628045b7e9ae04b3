# SPDX-License-Identifier: GPL-2.0
"""What a comparison leaves in build/report: JSON, Markdown, SVG and one HTML page.

The page holds its plots, so that it opens anywhere and without a network.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from . import plots, table
from .results import Measurement
from .steps import write_whole
from .summary import NAMES, Group, verdicts

TEMPLATES = Path(__file__).parent / "templates"

CAPTIONS = {
    "ratios": (
        "Rust/C with 95 % intervals",
        "Left of the line Rust has the smaller figure, right of it the larger. Grey: no difference shown.",
    ),
    "bandwidth": ("Bandwidth", "Bars: geometric mean over the boots. Points: single boots."),
    "latency": ("Completion latency", "All jobs and boots of a core in one histogram; both axes are logarithmic."),
    "dirty": ("Dirty memory and the counter while fio runs", "One line a boot, sampled in the guest."),
}


def write(
    folder: Path,
    setup: dict[str, Any],
    boots: Sequence[dict[str, Any]],
    measurements: Sequence[Measurement],
    groups: Sequence[Group],
) -> None:
    """Write all files, each of them whole or not at all; the page comes last."""
    titles = {scenario["name"]: scenario["title"] for scenario in setup["scenarios"]}
    drawn = plots.draw(groups, measurements, titles)
    for name, svg in drawn.items():
        write_whole(folder / f"{name}.svg", '<?xml version="1.0" encoding="utf-8"?>\n' + svg)
    document = {
        "format": 1,
        "units": {"bandwidth": "10^6 bytes a second", "latency bins": "nanoseconds", "pages": "4096 bytes"},
        "setup": setup,
        "verdicts": verdicts(groups),
        "summary": [summary(group) for group in groups],
        "boots": list(boots),
        "measurements": [measurement(m) for m in measurements],
    }
    write_whole(folder / "results.json", json.dumps(document, indent=1) + "\n")
    write_whole(folder / "report.md", markdown(groups, setup))
    write_whole(folder / "index.html", page(groups, setup, drawn))


def summary(group: Group) -> dict[str, Any]:
    """The figures of one scenario and mode."""
    cells = {}
    for cell in group.cells:
        figures: dict[str, Any] = {"unit": cell.metric.unit, **cell.values, "boots": cell.boots}
        if cell.ratio:
            single = cell.ratio.pairs == 1
            figures["ratio"] = {
                "estimate": cell.ratio.estimate,
                "low": None if single else cell.ratio.low,
                "high": None if single else cell.ratio.high,
                "pairs": cell.ratio.pairs,
                "verdict": "one pair" if single else cell.ratio.verdict(),
            }
        cells[cell.metric.name] = figures
    return {"scenario": group.scenario, "mode": group.mode, "pairs": group.pairs, "figures": cells}


def measurement(m: Measurement) -> dict[str, Any]:
    """One step of one boot, with every value that the summary was made from."""
    return {
        "pair": m.pair,
        "core": m.core,
        "scenario": m.scenario,
        "mode": m.mode,
        "mb_per_s": m.outcome.mb_per_s,
        "bytes": m.outcome.bytes,
        "ios": m.outcome.ios,
        "runtime_ms": m.outcome.runtime_ms,
        "latency_bins": {str(key): count for key, count in sorted(m.outcome.latency.items())},
        "peak_dirty_pages": m.peak_dirty_pages,
        "peak_writeback_pages": m.peak_writeback_pages,
        "cached_after_pages": m.cached_pages,
        "counter_peak_pages": m.counter_peak,
        "dontcache_rounds": m.dontcache_rounds,
        "counter_after_pages": m.counter_after,
        "true_after_pages": m.true_after,
        "sync_seconds": m.sync_seconds,
        "samples": m.samples,
        "jobs": m.outcome.jobs,
    }


def markdown(groups: Sequence[Group], setup: dict[str, Any]) -> str:
    """The table, its legend and how it was obtained, for a README."""
    lines = [table.markdown(groups), table.LEGEND, ""]
    lines += [f"- {verdict}" for verdict in verdicts(groups)]
    lines += [
        "",
        f"Obtained by `{setup['command']}` at revision {setup['revision']}: {setup['pairs']} pairs of boots"
        f" ({', '.join(NAMES.values())}, in turn), Linux {setup['kernel']}, {setup['fio']}, QEMU {setup['qemu']},"
        f" accelerator {setup['accelerator']}, {setup['cpus']} CPUs, {setup['memory']} of memory,"
        f" {setup['file_system']} on an emulated NVMe drive limited to {setup['drive']}.",
    ]
    return "\n".join(lines) + "\n"


def page(groups: Sequence[Group], setup: dict[str, Any], drawn: dict[str, str]) -> str:
    """The HTML page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("report.html").render(
        setup=setup,
        verdicts=verdicts(groups),
        header=table.header(),
        rows=table.rows(groups),
        legend=table.LEGEND,
        plots=drawn,
        captions=CAPTIONS,
    )
