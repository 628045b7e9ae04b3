# SPDX-License-Identifier: GPL-2.0
"""The page of make price CPUS=..."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import paths
from ..steps import write_whole
from ..tables import markdown
from ..vm.options import CORES
from . import stats
from .contenders import title

PAGE = paths.TOOLS / "results" / "transfers.md"
CPUS = (2, 4, 8)
MIB = 1 << 20
MOST = 15
PLACES = {"separate": "a file each, xfs", "one": "one file, xfs", "device": "block device"}
MODES = {"buffered": "buffered", "early": "buffered, early", "dontcache": "DONTCACHE"}
"""Early is buffered, too, but the flusher writes beside the writers, as it does for DONTCACHE."""

Document = Mapping[str, Any]


def result(cpus: int) -> Path:
    """Where the figures are kept."""
    return paths.BUILD / "price" / f"transfers-{cpus}.json"


def _each(document: Document) -> list[tuple[list[str], Any]]:
    """Each place and core: how a row begins, and the figures."""
    return [([PLACES[place], title(core)], document["cores"][core][place]) for place in PLACES for core in CORES[::-1]]


def _interval(values: Sequence[float], digits: int, base: Sequence[float] | None = None) -> str:
    """The mean, or that of the differences to a base, with its interval."""
    found = stats.paired(base or [0.0] * len(values), values, differences=True)
    sign = "+" if base else ""
    ends = " to ".join(f"{value:{sign}.{digits}f}" for value in (found.low, found.high))
    return f"{found.estimate:{sign}.{digits}f} ({ends})"


def _totals(document: Document) -> str:
    per_mib = MIB / document["setup"]["size"]
    rows = []
    for about, figures in _each(document):
        series = {mode: figures["loads"][mode]["transfers"] for mode in MODES}
        totals = [_interval([per_mib * value for value in values], 0) for values in series.values()]
        more = [_interval(series["dontcache"], 1, series[mode]) for mode in ("buffered", "early")]
        rows.append([*about, *totals, *more])
    titles = ["writers to", "core", *(f"{name}, per MiB" for name in MODES.values())]
    return markdown([*titles, "DONTCACHE - buffered, per write", "DONTCACHE - early, per write"], rows, 2)


def _line(group: Mapping[str, Any]) -> str:
    return f"`{group['kind']}: {', '.join(group['functions'])}`"


def _hot_only(document: Document) -> str:
    """What the target forbids: lines that several CPUs write once per write, and that buffered writes do not have."""
    least = document["setup"]["hot"]
    rows = []
    for about, figures in _each(document):
        for group in figures["lines"]:
            each = [rate / max(number, 1) for rate, number in zip(group["handovers"], group["lines"], strict=True)]
            if each[-1] >= least > max(each[:-1]):
                rows.append([*about, _line(group), f"{group['lines'][-1]:.0f}", *(f"{rate:.2f}" for rate in each)])
    titles = ["writers to", "core", "lines that are alike", "number", *(f"handovers of each, {name}" for name in MODES.values())]
    return markdown(titles, rows, 3) if rows else "None."


def _lines(document: Document, place: str) -> str:
    """Those with the most transfers more with DONTCACHE than when buffered writes are written as early."""
    rows = []
    for group in document["cores"]["rust"][place]["lines"]:
        _, early, dontcache = group["transfers"]
        figures = [*(f"{rate:.2f}" for rate in group["transfers"]), f"{dontcache - early:+.2f}"]
        figures += [f"{rate:.2f}" for rate in group["handovers"][1:]]
        rows.append((early - dontcache, [_line(group), f"{group['lines'][2]:.0f}", *figures]))
    titles = ["lines that are alike", "number", *MODES.values(), "DONTCACHE - early", "handovers, early", "handovers, DONTCACHE"]
    return markdown(titles, [row for _, row in sorted(rows, key=lambda item: item[0])[:MOST]])


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
        f"- A line is *hot* with at least {setup['hot']} handovers per write.\n"
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
        text += ["### Transfers", _totals(document), "### Lines that are hot with DONTCACHE only", _hot_only(document)]
        for place, name in PLACES.items():
            text += [f"### Lines, writers to {name}, Rust", _lines(document, place)]
    return "\n\n".join(text) + "\n"


def write() -> None:
    """Render the page from what was measured last with each number of CPUs."""
    found = [json.loads(result(cpus).read_text()) for cpus in CPUS if result(cpus).exists()]
    write_whole(PAGE, page(found))
