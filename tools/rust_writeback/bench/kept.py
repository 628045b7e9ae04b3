# SPDX-License-Identifier: GPL-2.0
"""make results: render the pages of tools/results/ and the README's tables from the figures that are committed there.

With ARGS=load, micro or conformance, the last measurement's figures take their place first. Each of these JSON files
says when, with which command and of which kernel code it was measured. make lint refuses counted instructions of other
code, and a page, table or picture that differs from its figures.
"""

import hashlib
import json
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import paths
from ..check import lines
from ..errors import Failure, Parser
from ..steps import write_whole
from ..tables import markdown
from . import micro, overwrite, pages, plots, price_page, report, summary, transfers
from .catalogue import SCALE
from .contenders import CORE_NAMES, CORES
from .stats import Ratio
from .summary import DONTCACHE

RESULTS = "tools/results"
BEGIN, END = "<!-- make results -->\n", "<!-- to here -->"

Document = dict[str, Any]

PAIRS = 10
"""With fewer pairs of boots, most intervals contain 1."""

TAIL = "p99.9"


@dataclass(frozen=True)
class Part:
    """A section of load.md, with its loads that the README has, too."""

    heading: str
    folder: str
    command: str
    machine: str
    loads: dict[str, str]


LOAD = (
    Part(
        "An emulated drive",
        "load",
        "make bench ARGS='--only small-4k/xfs --only append/xfs --only random-burst/xfs --only noisy/xfs"
        " --only small-4k/ext4 --pairs 10 --report build/load'",
        "emulated drive",
        {
            "small-4k/xfs": "4 KiB in a row",
            "append/xfs": "four logs that are synced",
            "random-burst/xfs": "a burst of random 4 KiB",
            "small-4k/ext4": "4 KiB in a row, ext4",
        },
    ),
    Part(
        "The native machine",
        "native",
        "make bench NATIVE=1 ARGS='--only small-4k/xfs --only small-64k/xfs --only sequential/xfs --only memory/xfs"
        " --only random/xfs --pairs 16'",
        "native",
        {
            "small-4k/xfs": "4 KiB in a row",
            "small-64k/xfs": "64 KiB in a row",
            "sequential/xfs": "1 MiB in a row",
            "memory/xfs": "1 MiB in a row, most memory in use",
            "random/xfs": "random 4 KiB",
        },
    ),
    Part(
        "Several writers, and the block device itself, on the native machine",
        "several",
        "make bench NATIVE=1 ARGS='--only writers-*/xfs --only competing/xfs --only device-read --only depth-1/device"
        " --pairs 16 --report build/several'",
        "native",
        {},
    ),
)


def measured(path: Path, command: str) -> dict[str, Any]:
    """A result that was measured with today's code, its one revision in the setup; anything else is refused."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        setup = found["setup"]
        [revision] = setup["revisions"] if "revisions" in setup else [setup["revision"]]
        setup["revision"], code = revision, setup["code"]
    except (OSError, ValueError, KeyError, TypeError):
        raise Failure(f"{path.parent.name} has no result of one revision; run: {command}") from None
    if not re.fullmatch("[0-9a-f]{12}", revision):
        raise Failure(f"{path.parent.name} was measured with uncommitted changes; commit, then run: {command}")
    if code != lines.fingerprint():
        raise Failure(f"{path.parent.name} is of {revision}, and the code has changed since; run: {command}")
    return found


def made_by(setup: Document, command: str) -> Document:
    """A page's setup: when, with what, where and of which code it was measured."""
    made = {"date": setup["date"].partition(" ")[0], "code": lines.fingerprint(), "host_cpu": setup.get("host_cpu", "unknown")}
    return {"command": command, "revision": setup["revision"], **made}


def _obtained(setup: Document) -> str:
    return f"`{setup['command']}`, {setup['date']}, revision {setup['revision']}, code {setup['code']}"


def _short(found: Any) -> Any:
    """Figures without those of single boots, with more digits than a page can show."""
    if isinstance(found, dict):
        return {name: _short(value) for name, value in found.items() if name != "boots"}
    if isinstance(found, list):
        return [_short(value) for value in found]
    return float(f"{found:.9g}") if isinstance(found, float) else found


def _ratios(part: Document, load: str) -> dict[str, dict[str, list[float]]]:
    """For each core: the ratios of DONTCACHE and of O_DIRECT to buffered, and DONTCACHE's of the slowest thousandth."""
    ratios: dict[str, dict[str, list[float]]] = {core: {} for core in CORES}
    for group in (group for group in part["beside"] if f"{group['scenario']}/{group['place']}" == load):
        for metric, mode, name in ((summary.MAIN, DONTCACHE, DONTCACHE), (summary.MAIN, SCALE, SCALE), (TAIL, DONTCACHE, TAIL)):
            ratio = group["figures"].get(metric, {}).get("ratios", {}).get(mode)
            if ratio and ratio["pairs"] >= PAIRS:
                ratios[group["mode"]][name] = [ratio["estimate"], ratio["low"], ratio["high"]]
    return ratios


def collect_load() -> Document:
    """What the benchmarks of load.md have measured. A part takes an hour: one that was not run keeps its figures."""
    committed = {part["heading"]: part for part in read("load")["parts"]}
    run = {part.heading for part in LOAD if (paths.BUILD / part.folder / "results.json").exists()}
    parts = []
    for part in LOAD:
        if run and part.heading not in run and part.heading in committed:
            parts.append(committed[part.heading])
            continue
        found = measured(paths.BUILD / part.folder / "results.json", part.command)
        if found.get("format") != report.FORMAT:
            raise Failure(f"{part.folder} was written by another version of the benchmark; run: {part.command}")
        setup = {name: value for name, value in found["setup"].items() if name not in ("scenarios", "revisions", "seconds")}
        figures = {
            "heading": part.heading,
            "setup": setup | made_by(setup, part.command),
            "obtained": found["obtained"],
            "notes": found["notes"],
            "summary": _short(found["summary"]),
            "beside": _short(found["beside"] + found["direct"]),
        }
        ratios = {load: _ratios(figures, load) for load in part.loads}
        if missing := [load for load, cores in ratios.items() if not all(DONTCACHE in cores[core] for core in CORES)]:
            raise Failure(f"{part.folder} has no {PAIRS} pairs of {', '.join(missing)} on both cores; run: {part.command}")
        parts.append(figures)
    return {"parts": parts}


def load_page(document: Document) -> str:
    """load.md."""
    return pages.render("load.md", obtained=_obtained, read=report.read, **document)


def collect_micro() -> Document:
    """What make micro has counted."""
    found = measured(paths.BUILD / "report" / "micro.json", "make micro")
    return {**found, "setup": {**made_by(found["setup"], "make micro"), "kernel": found["setup"]["kernel"]}}


def micro_page(found: Document) -> str:
    """micro.md: what single operations cost."""
    sizes = {f"{block} pwrite {size}": (block >> 10, size >> 10) for block in overwrite.BLOCKS for size in overwrite.SIZES}
    return pages.render("micro.md", obtained=_obtained, micro=micro, sizes=sizes, places=overwrite.PLACES, **found)


def collect_conformance() -> Document:
    """What make conformance has found."""
    found = measured(paths.BUILD / "conformance" / "conformance.json", "make conformance")
    setup, rows = found["setup"], found["rows"]
    if setup["rows"] != "whole" or {core for row in rows for core in row["results"]} != set(CORES):
        raise Failure("conformance has no complete result of both cores; run: make conformance")
    return {"setup": made_by(setup, "make conformance") | {name: setup[name] for name in ("kernel", "accelerator")}, "rows": rows}


def conformance_page(document: Document) -> str:
    """conformance.md: which promises each core kept, and where."""
    setup, rows = document["setup"], document["rows"]
    cores = {core: name for core, name in CORE_NAMES.items() if core in rows[0]["results"]}
    header = ["promise", "row", *(text for name in cores.values() for text in (name, f"figures of {name}"))]
    cells = [
        [row["promise"], f"`{row['name']}`", *(cell for core in cores for cell in _verdict(row["results"][core]))] for row in rows
    ]
    kept = [f"{name} keeps {sum(row['results'][core]['verdict'] == 'kept' for row in rows)}" for core, name in cores.items()]
    told = [(f"`{row['name']}`", [row["results"][core].get("each", {}) for core in cores]) for row in rows]
    # The places where the rows were tried, the rows, and what was wrong there on each core.
    places = [[at, row, *(core.get(at, "not run") or "kept" for core in each)] for row, each in told for at in each[-1]]
    more = {"header": header, "cells": cells, "kept": kept, "cores": list(cores.values()), "places": places}
    return pages.render("conformance.md", obtained=_obtained, setup=setup, rows=rows, **more)


def _verdict(result: dict[str, Any]) -> list[str]:
    # A console stays where the row was tried.
    return [result["verdict"], result["figures"].partition("; the console is in ")[0]]


COLLECTED: dict[str, Callable[[], Document]] = {
    "load": collect_load,
    "micro": collect_micro,
    "conformance": collect_conformance,
}
"""The pages whose figures make results takes; make price writes its own, with CPUS=... too."""

PAGES: dict[str, Callable[[Document], str]] = {
    "load": load_page,
    "micro": micro_page,
    "conformance": conformance_page,
    "price": price_page.page,
    "transfers": transfers.page,
}
"""What renders each page."""


def read(name: str, project: Path = paths.PROJECT) -> Document:
    """The committed figures of a page."""
    found: Document = json.loads((project / RESULTS / f"{name}.json").read_text())
    return found


def loads(document: Document) -> list[Document]:
    """The loads that the README has."""
    return [load for part in document["parts"] for load in loads_of(part)]


def loads_of(part: Document) -> list[Document]:
    """The loads of a part, each with its machine and its ratios."""
    [known] = (known for known in LOAD if known.heading == part["heading"])
    return [{"load": text, "machine": known.machine, **_ratios(part, load)} for load, text in known.loads.items()]


def cell(load: Document, core: str, name: str) -> str:
    """A ratio as a table has it, or nothing."""
    if name not in load[core]:
        return "-"
    estimate, low, high = load[core][name]
    return str(Ratio(estimate, low, high, PAIRS))


def readme_part(document: Document) -> str:
    """What stands between the marks of the README."""
    parts = [part for part in document["parts"] if loads_of(part)]
    revisions = ", ".join(dict.fromkeys(part["setup"]["revision"] for part in parts))
    header = ("load", "machine", "bandwidth: C", "Rust", "O_DIRECT, Rust", f"{TAIL}: C", "Rust")
    columns = (("c", DONTCACHE), ("rust", DONTCACHE), ("rust", SCALE), ("c", TAIL), ("rust", TAIL))
    rows = [[load["load"], load["machine"], *(cell(load, *column) for column in columns)] for load in loads(document)]
    places = ((part["setup"]["pairs"], part["heading"]) for part in parts)
    pairs = ", ".join(f"{count} ({heading[0].lower()}{heading[1:]})" for count, heading in places)
    said = (
        f"Divided by buffered writes, with 95 % intervals; pairs of boots: {pairs}; revision {revisions}. A dash: not run,"
        " or too few requests. Inconclusive: an interval that ends at more than twice its start."
    )
    return f"{textwrap.fill(said, 120)}\n\n{markdown(header, rows, 2)}\n"


def _drawn(document: Document) -> dict[str, list[list[float] | None]]:
    """What the picture shows."""
    ratios = (("c", DONTCACHE), ("rust", DONTCACHE), ("rust", SCALE))
    return {
        f"{load['load']}, {load['machine']}": [load[core].get(name) for core, name in ratios] for load in loads(document)
    }


def mark(document: Document) -> str:
    """The picture's first line. It says of which figures it is: another matplotlib draws the same a bit differently."""
    return f"<!-- {hashlib.sha256(json.dumps(_drawn(document)).encode()).hexdigest()[:12]} -->\n"


PICTURE = f"{RESULTS}/beside.svg"


def rendered(project: Path = paths.PROJECT) -> dict[str, str]:
    """The pages, the README and the picture, as they follow from the committed figures."""
    documents = {name: read(name, project) for name in PAGES}
    pages = {f"{RESULTS}/{name}.md": render(documents[name]) for name, render in PAGES.items()}
    readme = (project / "README.md").read_text()
    readme = price_page.between(readme, price_page.BEGIN, price_page.END, price_page.readme_part(documents["price"]))
    readme = price_page.between(readme, BEGIN, END, readme_part(documents["load"]))
    drawn, picture = mark(documents["load"]), (project / PICTURE).read_text()
    if not picture.startswith(drawn):
        picture = drawn + plots.draw_beside(_drawn(documents["load"]))
    return {**pages, "README.md": readme, PICTURE: picture}


COUNTED = ("price", "micro")
"""What has to be of the code that is there: counted, and so the same whenever it is measured. Pages of times say which
revision they are of: they take an hour or more, and differ more from run to run than from one revision to the next."""


def stale(project: Path = paths.PROJECT) -> list[str]:
    """What is not of the code that is here, or does not follow from the committed figures."""
    now = lines.fingerprint(project)
    wrong = [
        f"{RESULTS}/{name}.json is of the code {said}, and here is {now}; run: make {name}"
        + (f", then make results ARGS={name}" if name in COLLECTED else "")
        for name in COUNTED
        if (said := read(name, project)["setup"]["code"]) != now
    ]
    differ = [name for name, text in rendered(project).items() if (project / name).read_text() != text]
    return wrong + [f"{name} differs from the figures in {RESULTS}; run: make results" for name in differ]


def publish(documents: dict[str, Document], project: Path = paths.PROJECT) -> None:
    """Write figures, and what is rendered from them and from the others."""
    for name, document in documents.items():
        write_whole(project / RESULTS / f"{name}.json", json.dumps(document, indent=1) + "\n")
    for name, text in rendered(project).items():
        write_whole(project / name, text)


def main(arguments: list[str]) -> int:
    """Take the figures that are asked for, and render all pages."""
    parser = Parser(prog="results", description=__doc__)
    parser.add_argument("page", nargs="*", choices=COLLECTED, help="take the last measurement's figures for it")
    options = parser.parse_args(arguments)
    publish({name: COLLECTED[name]() for name in options.page})
    print(f"{RESULTS}/ and README.md are of the same figures")
    return 0
