# SPDX-License-Identifier: GPL-2.0
"""The page of make price CPUS=..."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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

TEXT, NUMBER, NAME = "text", "number", "name"
BOTH = {"writers to": TEXT, "core": TEXT}

Document = Mapping[str, Any]


def _numbers(*titles: str) -> dict[str, str]:
    return dict.fromkeys(titles, NUMBER)


@dataclass(frozen=True)
class Part:
    """A table: its title and its columns, each of which is text, numbers or names from the kernel's code."""

    title: str
    columns: Mapping[str, str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """For the page."""
        if not self.rows:
            return f"### {self.title}\n\nNone."
        ruler = (" ---: " if kind == NUMBER else " --- " for kind in self.columns.values())
        lines = [f"### {self.title}", "", f"| {' | '.join(self.columns)} |", f"|{'|'.join(ruler)}|"]
        for row in self.rows:
            cells = (f"`{cell}`" if kind == NAME else cell for cell, kind in zip(row, self.columns.values(), strict=True))
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)


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
    titles = [*(f"{name}, per MiB" for name in MODES.values())]
    titles += ["DONTCACHE - buffered, per write", "DONTCACHE - early, per write"]
    return Part("Transfers", BOTH | _numbers(*titles), rows)


def _line(group: Mapping[str, Any]) -> str:
    return f"{group['kind']}: {', '.join(group['functions'])}"


def _hottest(document: Document) -> Part:
    rows = []
    for core, place, loads in _loads(document):
        for mode, name in MODES.items():
            hottest, hot = loads[mode]["hottest"], loads[mode]["hot"]
            rates = (f"{hottest[figure]:.2f}" for figure in ("transfers", "handovers"))
            number = f"{sum(hot) / len(hot):.1f}"
            rows.append([PLACES[place], CORE_NAMES[core], name, *rates, number, _line(hottest)])
    figures = _numbers("its transfers per write", "its handovers", "hot lines")
    return Part("The hottest line", BOTH | {"mode": TEXT} | figures | {"hottest line": NAME}, rows)


def _hot_only(document: Document) -> Part:
    """What the target forbids: lines that several CPUs write once per write, and that buffered writes do not have."""
    least = document["setup"]["hot"]
    rows = []
    for core, place, _ in _loads(document):
        for group in document["cores"][core][place]["lines"]:
            each = [rate / max(number, 1) for rate, number in zip(group["handovers"], group["lines"], strict=True)]
            if each[-1] >= least > max(each[:-1]):
                number = f"{group['lines'][-1]:.0f}"
                rows.append([PLACES[place], CORE_NAMES[core], number, *(f"{rate:.2f}" for rate in each), _line(group)])
    figures = _numbers("number", *(f"handovers of each, {name}" for name in MODES.values()))
    return Part("Lines that are hot with DONTCACHE only", BOTH | figures | {"lines that are alike": NAME}, rows)


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
    rates_of = _numbers(*MODES.values(), "DONTCACHE - early")
    more = _numbers("handovers, early", "handovers, DONTCACHE")
    where = f"writers to {PLACES[place]}, Rust"
    return [
        Part(f"Functions, {where}", {"function": NAME} | rates_of, functions),
        Part(f"Lines, {where}", {"lines that are alike": NAME} | _numbers("number") | rates_of | more, groups),
    ]


def parts(document: Document) -> list[Part]:
    """All tables of a number of CPUs."""
    details = [part for place in PLACES for part in _details(document, place)]
    return [_totals(document), _hottest(document), _hot_only(document), *details]


def page(documents: Sequence[Document]) -> str:
    """The committed page."""
    setup = documents[-1]["setup"]
    text = [
        "# Cache lines that move between CPUs",
        "`make price CPUS=4`, also with 2 and 8, counts the 64-byte lines of the kernel's memory that move between the CPUs"
        f" of a guest, as if caches were infinite. Each CPU has a writer. Together they write {setup['bytes'] >> 20} MiB in"
        f" writes of {setup['size']} bytes. A load ends 300 ms after the sync.",
        "- A *transfer* is an access to a line that another CPU has modified, or a store to a line that other CPUs hold.\n"
        "- A *handover* is a transfer for a store to a line that another CPU has stored to last: several CPUs write the line.\n"
        f"- A *hot line* has at least {setup['hot']} handovers per write.\n"
        "- *early* is buffered, but the flusher writes as soon as 1 MiB is dirty. By default it writes a buffered load of this"
        " size when the last writer has ended, and does not contend with the writers. With DONTCACHE the flusher does"
        " contend.",
        f"Figures are means of {setup['repetitions']} repetitions in one boot of each core, with 95 % intervals. A run before"
        " the first repetition is discarded. The host has fewer CPUs than the guest, so the CPUs take turns after 100"
        " accesses of memory each. The guest is slow beside its clock: tasks wait and wake more often than on a real machine,"
        " and xfs is mounted with lazytime, because otherwise nearly each write would log a new time of its file.",
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
