# SPDX-License-Identifier: GPL-2.0
"""Writes the report of a comparison: JSON, Markdown and one HTML page.

The page holds its plots, so it opens anywhere and without a network.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..steps import write_whole
from . import boots, pages, plots, table
from .catalogue import SCALE
from .contenders import title
from .results import Measurement
from .stats import Ratio
from .summary import BESIDE, Cell, COSTS, FULL, Group, SHORT, verdicts

FORMAT = 6
"""Of results.json: a number more when a reader of the old one would misread it."""

ABOUT = ("scenario", "mode", "place", "drive", "variants")
"""What a summary says of its group."""


@dataclass(frozen=True)
class Report:
    """All that a report is made from. The notes say what could not be reported, and what else there is to know."""

    setup: dict[str, Any]
    known: Sequence[dict[str, Any]]
    measurements: Sequence[Measurement]
    groups: Sequence[Group]
    beside: Sequence[Group]
    notes: Sequence[str]
    vm: boots.Machine

    def obtained(self) -> str:
        """How, in a sentence."""
        setup = self.setup
        names = ", ".join(title(variant) for variant in setup["variants"])
        return (
            f"{table.many('pair', setup['pairs'])} of boots ({names}, in turn), Linux {setup['kernel']}, {setup['fio']},"
            f" {self.vm.ran(setup)}, {setup['cpus']} CPUs, {setup['memory']} of memory, {setup['places']} on {setup['drives']}."
        )

    def said(self) -> list[str]:
        """What the figures show, in sentences."""
        about = verdicts(self.beside, self.vm.pairs_of) if self.beside else []
        return [*verdicts(self.groups, self.vm.pairs_of), *about, *self.notes]

    @property
    def tables(self) -> list[table.Table]:
        """Those in which there is anything."""
        tables = [
            table.Beside("DONTCACHE beside buffered", self.beside, BESIDE),
            table.Table("What the loads did", self.groups, SHORT),
            table.Table("What they cost", self.groups, COSTS),
        ]
        return [one for one in tables if one.rows()]

    def warnings(self) -> list[str]:
        """What has to be known before anything else."""
        revisions = self.setup["revisions"]
        dates = [boot["date"] for boot in self.known if "date" in boot]
        if len(revisions) < 2:
            return []
        return [f"mixed: these boots are of {len(revisions)} revisions, {', '.join(revisions)}, from {min(dates)} on."]


def write(folder: Path, report: Report) -> None:
    """Write all files, each of them whole or not at all; the page comes last."""
    drawn = plots.draw(report.measurements, report.beside)
    document = {
        "format": FORMAT,
        "units": {"bandwidth": "10^6 bytes a second", "latency": "nanoseconds: requests", "pages": "4096 bytes"},
        "setup": report.setup,
        "obtained": report.obtained(),
        "verdicts": [*report.warnings(), *report.said()],
        "notes": [*report.warnings(), *report.notes],
        "summary": [summary(group) for group in report.groups],
        "beside": [summary(group) for group in report.beside if group.variants[-1] != SCALE],
        "direct": [summary(group) for group in report.beside if group.variants[-1] == SCALE],
        "boots": list(report.known),
        "measurements": [{**vars(m), "outcome": vars(m.outcome)} for m in report.measurements],
    }
    write_whole(folder / "results.json", json.dumps(document, indent=1) + "\n")
    write_whole(folder / "report.md", pages.render("report.md", report=report))
    write_whole(folder / "index.html", pages.render("report.html", report=report, plots=drawn))


def summary(group: Group) -> dict[str, Any]:
    """The figures of one scenario and mode."""
    figures = {
        name: {
            "unit": cell.metric.unit,
            **cell.values,
            "boots": cell.boots,
            "ratios": {variant: vars(ratio) for variant, ratio in cell.ratios.items()},
        }
        for name, cell in group.cells.items()
    }
    return {**{name: getattr(group, name) for name in ABOUT}, "figures": figures}


def group(found: dict[str, Any]) -> Group:
    """The group of a summary, which may lack the figures of single boots."""
    metrics = {metric.name: metric for metric in (*FULL, *BESIDE)}
    cells = {}
    for name, figures in found["figures"].items():
        ratios = {variant: Ratio(**ratio) for variant, ratio in figures["ratios"].items()}
        cells[name] = Cell(metrics[name], {v: figures[v] for v in found["variants"] if v in figures}, {}, ratios)
    return Group(**{name: found[name] for name in ABOUT}, cells=cells)


def read(found: dict[str, Any]) -> Report:
    """The report of what kept.py keeps of it."""
    groups, beside = ([group(one) for one in found[name]] for name in ("summary", "beside"))
    return Report(found["setup"], [], [], groups, beside, found["notes"], boots.Machine())
