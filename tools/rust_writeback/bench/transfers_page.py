# SPDX-License-Identifier: GPL-2.0
"""What make price CPUS=... has counted, on the console and as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from .. import paths
from ..steps import write_whole
from ..vm.options import CORES
from . import stats

PAGE = paths.TOOLS / "results" / "transfers.md"
CPUS = (2, 4, 8)
MIB = 1 << 20
MOST = 15
PLACES = {"separate": "a file each, xfs", "one": "one file, xfs", "device": "block device"}
MODES = {"buffered": "buffered", "early": "buffered, early", "dontcache": "DONTCACHE"}
CORE_NAMES = {"c": "C", "rust": "Rust"}

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """A table: its title, what its columns are, and whether they are numbers."""

    title: str
    columns: Sequence[str]
    numbers: Sequence[bool]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """For the page."""
        ruler = (" ---: " if number else " --- " for number in self.numbers)
        lines = [f"### {self.title}", "", f"| {' | '.join(self.columns)} |", f"|{'|'.join(ruler)}|"]
        return "\n".join(lines + [f"| {' | '.join(row)} |" for row in self.rows])

    def show(self, console: Console) -> None:
        """For the terminal."""
        table = Table(box=box.SIMPLE_HEAD, title=self.title, title_justify="left")
        for column, number in zip(self.columns, self.numbers, strict=True):
            table.add_column(column, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        console.print(table)


def result(cpus: int) -> Path:
    """Where the figures are kept."""
    return paths.BUILD / "price" / f"transfers-{cpus}.json"


def _loads(document: Document) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Core, place and the loads there."""
    return [(core, place, document["cores"][core][place]["loads"]) for place in PLACES for core in CORES[::-1]]


def _interval(values: Sequence[float], digits: int, base: Sequence[float] | None = None) -> str:
    """The mean, or that of the differences to a base, with its interval."""
    found = stats.paired(base or [0.0] * len(values), values, differences=True)
    sign = "+" if base else ""
    ends = " to ".join(f"{value:{sign}.{digits}f}" for value in (found.low, found.high))
    return f"{found.estimate:{sign}.{digits}f} ({ends})"


def _totals(document: Document) -> Part:
    per_mib = MIB / document["setup"]["size"]
    rows = []
    for core, place, loads in _loads(document):
        series = {mode: loads[mode]["transfers"] for mode in MODES}
        totals = [_interval([per_mib * value for value in values], 0) for values in series.values()]
        more = [_interval(series["dontcache"], 1, series[mode]) for mode in ("buffered", "early")]
        rows.append([PLACES[place], CORE_NAMES[core], *totals, *more])
    columns = ["writers to", "core", *(f"{name}, per MiB" for name in MODES.values())]
    columns += ["DONTCACHE - buffered, per write", "DONTCACHE - early, per write"]
    return Part("Transfers", columns, [False, False, *[True] * 5], rows)


def _line(group: Mapping[str, Any]) -> str:
    return f"{group['kind']}: {', '.join(group['functions'])}"


def _hottest(document: Document) -> Part:
    rows = []
    for core, place, loads in _loads(document):
        for mode, name in MODES.items():
            hottest, hot = loads[mode]["hottest"], loads[mode]["hot"]
            figures = [f"{hottest['transfers']:.2f}", f"{hottest['handovers']:.2f}", f"{sum(hot) / len(hot):.1f}"]
            rows.append([PLACES[place], CORE_NAMES[core], name, *figures, _line(hottest)])
    columns = ["writers to", "core", "mode", "its transfers per write", "handovers", "hot lines", "hottest line"]
    return Part("The hottest line", columns, [False, False, False, True, True, True, False], rows)


def _hot_only(document: Document) -> Part:
    """What the target forbids: lines that several CPUs write once per write, and that buffered writes do not have."""
    least = document["setup"]["hot"]
    rows = []
    for core, place, _ in _loads(document):
        for group in document["cores"][core][place]["lines"]:
            *buffered, own = (rate / max(number, 1) for rate, number in zip(group["handovers"], group["lines"], strict=True))
            if own >= least > max(buffered):
                figures = [f"{group['lines'][2]:.0f}", *(f"{rate:.2f}" for rate in (*buffered, own))]
                rows.append([PLACES[place], CORE_NAMES[core], *figures, _line(group)])
    columns = ["writers to", "core", "number", *(f"handovers of each, {name}" for name in MODES.values()), "lines that are alike"]
    return Part("Lines that are hot with DONTCACHE only", columns, [False, False, *[True] * 4, False], rows)


def _most(items: Sequence[tuple[Any, Sequence[float]]]) -> list[tuple[Any, Sequence[float]]]:
    """Those with the most transfers more with DONTCACHE than when buffered writes are written as early."""
    return sorted(items, key=lambda item: item[1][1] - item[1][2])[:MOST]


def _details(document: Document, place: str) -> list[Part]:
    found = document["cores"]["rust"][place]
    functions = [
        [name, *(f"{rate:.2f}" for rate in rates), f"{rates[2] - rates[1]:+.2f}"]
        for name, rates in _most(list(found["functions"].items()))
    ]
    groups = [
        [_line(group), f"{group['lines'][2]:.0f}", *(f"{rate:.2f}" for rate in rates), f"{rates[2] - rates[1]:+.2f}"]
        + [f"{group['handovers'][mode]:.2f}" for mode in (1, 2)]
        for group, rates in _most([(group, group["transfers"]) for group in found["lines"]])
    ]
    columns = [*MODES.values(), "DONTCACHE - early"]
    numbers = [False, *[True] * 4]
    more = ["handovers, early", "handovers, DONTCACHE"]
    where = f"writers to {PLACES[place]}, Rust"
    return [
        Part(f"Functions, {where}", ["function", *columns], numbers, functions),
        Part(f"Lines, {where}", ["lines that are alike", "number", *columns, *more], [False, *[True] * 7], groups),
    ]


def parts(document: Document) -> list[Part]:
    """All tables of a number of CPUs."""
    details = [part for place in PLACES for part in _details(document, place)]
    return [_totals(document), _hottest(document), _hot_only(document), *details]


def show(document: Document, console: Console) -> None:
    """Print all tables."""
    for part in parts(document):
        part.show(console)


def page(documents: Sequence[Document]) -> str:
    """The committed page."""
    setup = documents[-1]["setup"]
    text = [
        "# Cache lines that move between CPUs",
        "`make price CPUS=4`, also with 2 and 8: transfers of 64-byte lines of the kernel's memory between the CPUs of a"
        f" guest, if caches were infinite. Each CPU has a writer, all write {setup['bytes'] >> 20} MiB, {setup['size']} bytes a write;"
        " a load ends 300 ms after the sync. A transfer is an access to a line that another CPU has modified, or a store to a"
        " line that other CPUs hold. A handover is a transfer for a store to a line that another CPU has stored to last:"
        f" several CPUs write that line. A hot line has at least {setup['hot']} handovers per write.",
        "`buffered, early` is buffered as well, but the flusher writes as soon as 1 MiB is dirty. With the default a buffered"
        " load of this size is written after the last writer has ended, so nothing contends with the writers."
        " DONTCACHE differs from `early` by what DONTCACHE does.",
        "xfs is mounted with lazytime: the guest is slow, and otherwise nearly each write would log a new time of its file.",
        f"Means of {setup['repetitions']} repetitions in one boot of each core, with 95 % intervals; a run before them is"
        " thrown away. The CPUs take turns after 100 accesses of memory, because the host has fewer than the guest: two CPUs"
        " that use a line at once do so here as well. Waiting and waking are more frequent than with real CPUs.",
        "Accesses by these functions do not count, because they copy data, run by the clock or access the registers of the"
        f" APIC: `{' '.join(setup['skipped'])}`",
    ]
    for document in documents:
        setup = document["setup"]
        text.append(f"## {setup['cpus']} CPUs")
        text.append(
            f"`{setup['command']}`, {setup['date'][:10]}, revision {setup['revision']}, code {setup['code']}: Linux"
            f" {setup['kernel']}, QEMU {setup['qemu']}, accelerator {setup['accelerator']} with a thread for each CPU."
        )
        text += [part.markdown() for part in parts(document)]
    return "\n\n".join(text) + "\n"


def write() -> None:
    """Render the page from what was measured last with each number of CPUs."""
    found = [json.loads(result(cpus).read_text()) for cpus in CPUS if result(cpus).exists()]
    write_whole(PAGE, page(found))
