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

from ..steps import write_whole
from . import plots, table
from .results import Counts, Measurement
from .summary import SHORT, Group, Metric, verdicts
from .variants import title

TEMPLATES = Path(__file__).parent / "templates"

CAPTIONS = {
    "ratios": (
        "Ratios with 95 % intervals",
        "Left of the line the other core has the smaller figure than the first, right of it the larger."
        " Grey: no difference shown.",
    ),
    "bandwidth": ("Bandwidth", "Bars: geometric mean over the boots. Points: single boots."),
    "latency": ("Completion latency", "All jobs and boots of a core in one histogram; both axes are logarithmic."),
    "waits": (
        "How long a bio waits for its end",
        "From its way into the batch to its end function, in steps of 8 us; of all boots of a core, and of the loads"
        " that count it.",
    ),
    "throughput": (
        "What the device moved while fio ran",
        "Read and written, by half seconds (in a short run, by tenths of it); one line a boot.",
    ),
    "dirty": ("Dirty memory while fio runs", "One line a boot, sampled in the guest."),
    "counter": ("The DONTCACHE counter while fio runs", "One line a boot, sampled in the guest."),
    "switches": ("Context switches while fio runs", "Of the whole machine, by half seconds; one line a boot."),
    "jobs": (
        "CPU time of fio while it runs",
        "CPUs that all its threads have together, by half seconds; one line a boot.",
    ),
    "workers": (
        "CPU time of the kernel's workers while fio runs",
        "CPUs that all kworkers, flushers among them, have together, by half seconds; one line a boot.",
    ),
}

FORMAT = 2
"""Of results.json: a number more when a reader of the old one would misread it."""

Tables = Sequence[tuple[str, Sequence[Metric]]]
"""The tables of a report: what each is about, and its columns."""

SHORT_TABLES: Tables = (("", SHORT),)


class Words:
    """What a report says of how its figures came about; these are for guests."""

    heading = "DONTCACHE writeback: the Rust core beside the C core"
    legend = table.LEGEND
    captions = CAPTIONS
    pairs_of = "boots"
    emulated = "The CPU is emulated: only ratios mean anything."

    def summary(self, setup: dict[str, Any]) -> str:
        """Below the heading of the page."""
        names = ", ".join(title(variant) for variant in setup["variants"])
        emulated = "" if setup["accelerator"] == "kvm" else f" {self.emulated}"
        return (
            f"{setup['date']}, Linux {setup['kernel']}, {setup['accelerator']},"
            f" {table.many('pair', setup['pairs'])} of boots ({names}, in turn).{emulated}"
        )

    def obtained(self, setup: dict[str, Any]) -> str:
        """At the end of the text for a mail."""
        names = ", ".join(title(variant) for variant in setup["variants"])
        return (
            f"{table.many('pair', setup['pairs'])} of boots"
            f" ({names}, in turn), Linux {setup['kernel']}, {setup['fio']}, QEMU {setup['qemu']},"
            f" accelerator {setup['accelerator']}, {setup['cpus']} CPUs, {setup['memory']} of memory,"
            f" {setup['places']} on {setup['drive']}."
        )


def write(
    folder: Path,
    setup: dict[str, Any],
    boots: Sequence[dict[str, Any]],
    measurements: Sequence[Measurement],
    groups: Sequence[Group],
    tables: Tables = SHORT_TABLES,
    notes: Sequence[str] = (),
    words: Words | None = None,
) -> None:
    """Write all files, each of them whole or not at all; the page comes last.

    The notes come after the verdicts: what could not be reported, and why it ended.
    """
    titles = {scenario["name"]: scenario["title"] for scenario in setup["scenarios"]}
    words = words or Words()
    said = [*verdicts(groups, words.pairs_of), *notes]
    drawn = plots.draw(groups, measurements, titles, list(words.captions))
    for name in words.captions:
        (folder / f"{name}.svg").unlink(missing_ok=True)  # of an earlier report, which may have had more
    for name, svg in drawn.items():
        write_whole(folder / f"{name}.svg", '<?xml version="1.0" encoding="utf-8"?>\n' + svg)
    document = {
        "format": FORMAT,
        "units": {"bandwidth": "10^6 bytes a second", "latency bins": "nanoseconds", "pages": "4096 bytes"},
        "setup": setup,
        "verdicts": said,
        "summary": [summary(group) for group in groups],
        "boots": list(boots),
        "measurements": [measurement(m) for m in measurements],
    }
    write_whole(folder / "results.json", json.dumps(document, indent=1) + "\n")
    write_whole(folder / "report.md", markdown(groups, setup, tables, said, words))
    write_whole(folder / "index.html", page(groups, setup, drawn, tables, said, words))


def summary(group: Group) -> dict[str, Any]:
    """The figures of one scenario and mode."""
    cells = {}
    for cell in group.cells:
        figures: dict[str, Any] = {"unit": cell.metric.unit, **cell.values, "boots": cell.boots}
        figures["ratios"] = {
            variant: {
                "estimate": ratio.estimate,
                "low": ratio.low if ratio.known else None,
                "high": ratio.high if ratio.known else None,
                "pairs": ratio.pairs,
                "verdict": ratio.verdict(title(variant)) if ratio.known else "one pair",
            }
            for variant, ratio in cell.ratios.items()
        }
        cells[cell.metric.name] = figures
    return {
        "scenario": group.scenario,
        "mode": group.mode,
        "place": group.place,
        "pairs": group.pairs,
        "figures": cells,
    }


def measurement(m: Measurement) -> dict[str, Any]:
    """One step of one boot, with every value that the summary was made from."""
    return {
        "pair": m.pair,
        "variant": m.variant,
        "scenario": m.scenario,
        "mode": m.mode,
        "place": m.place,
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
        "used": m.used,
        "device": m.device,
        "bytes_of_step": m.moved,
        "memory_group": m.memory_group,
        "counts": counts(m.counts) if m.counts else None,
        "samples": m.samples,
        "jobs": m.outcome.jobs,
    }


def counts(c: Counts) -> dict[str, Any]:
    """What the kernel counted in one step."""
    return {
        "bios": c.bios,
        "runs": c.runs,
        "runs_by_function": c.runs_by_function,
        "latency_us": {str(key): count for key, count in sorted(c.latency_us.items())},
    }


def markdown(
    groups: Sequence[Group], setup: dict[str, Any], tables: Tables, said: Sequence[str], words: Words
) -> str:
    """The tables, their legend and how they were obtained, for a README or a mail."""
    lines = []
    for heading, metrics in tables:
        lines += [*([f"{heading}:", ""] if heading else []), table.markdown(groups, metrics)]
    lines += [words.legend, ""]
    lines += [f"- {verdict}" for verdict in said]
    lines += ["", f"Obtained by `{setup['command']}` at revision {setup['revision']}: {words.obtained(setup)}"]
    return "\n".join(lines) + "\n"


def page(
    groups: Sequence[Group],
    setup: dict[str, Any],
    drawn: dict[str, str],
    tables: Tables,
    said: Sequence[str],
    words: Words,
) -> str:
    """The HTML page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("report.html").render(
        setup=setup,
        verdicts=said,
        names=len(table.names(groups)),
        tables=[(heading, table.header(groups, metrics), table.rows(groups, metrics)) for heading, metrics in tables],
        words=words,
        plots=drawn,
    )
