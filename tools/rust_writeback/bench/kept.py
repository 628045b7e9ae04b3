# SPDX-License-Identifier: GPL-2.0
"""make results: write the last measurements to tools/results/, and from there to the README.

Each page says when, with which command and on what it was measured. It has a fingerprint of the kernel code that was
measured. make lint refuses counted instructions of other code, and a README whose table or picture differs from the
pages.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from .. import paths
from ..check import lines
from ..errors import Failure, Parser
from ..steps import write_whole
from . import micro, overwrite, plots, price_page

FOLDER = paths.TOOLS / "results"
README = paths.PROJECT / "README.md"
PICTURE = FOLDER / "beside.svg"
BEGIN, END = "<!-- make results -->\n", "<!-- to here -->"

CODE = re.compile(r"\bcode ([0-9a-f]{12})\b")
REVISION = re.compile(r"\brevision ([0-9a-f]{12})\b")


BESIDE = "DONTCACHE beside buffered"

RATIO = re.compile("ratio (?!of )|O_DIRECT ratio")
"""The columns of its main figure. Until 2026-11 that was the whole run, and there was no O_DIRECT."""


@dataclass(frozen=True)
class Part:
    """A section of a page: the benchmark that it is from, its tables, and the loads that go to the README."""

    heading: str
    folder: Path
    command: str
    tables: tuple[str, ...] = (BESIDE,)
    machine: str = ""
    loads: dict[str, str] = field(default_factory=dict)


def _bench(*loads: str, more: str, on: str = "") -> str:
    """The command that measures these loads, as the shell takes it."""
    only = " ".join(f"--only {load}" for load in loads)
    return " ".join(filter(None, ["make bench", on, f"ARGS='{only} {more}'"]))


_NATIVE = ("small-*", "sequential", "memory", "random", "append", "tree", "writers-32")

LOAD = (
    Part(
        "make run",
        paths.BUILD / "report",
        "make run",
        (BESIDE, "What the loads did", "What they cost"),
        "emulated drive",
        {
            "small-4k": "4 KiB in a row",
            "append": "four logs that are synced",
            "random-burst": "a burst of random 4 KiB",
        },
    ),
    Part(
        "The native machine",
        paths.BUILD / "native",
        _bench(*(f"{load}/xfs" for load in _NATIVE), on="NATIVE=1", more="--pairs 16"),
        machine="native",
        loads={
            "small-4k": "4 KiB in a row",
            "sequential": "1 MiB in a row",
            "memory": "1 MiB in a row, most memory in use",
            "random": "random 4 KiB",
        },
    ),
    Part(
        "An NFS server",
        paths.BUILD / "bench",
        _bench("*/nfs", more="--pairs 3"),
        (BESIDE, "What the loads did"),
        "emulated drive",
        {"sequential": "an NFS server, files larger than memory, in a row"},
    ),
)


def _all_loads(file_system: str) -> tuple[Part, ...]:
    """Each load on it, on the drive that it says."""
    command = _bench(f"*/{file_system}", more=f"--pairs 2 --report build/{file_system}")
    return (Part("make bench", paths.BUILD / file_system, command),)


XFS, EXT4 = _all_loads("xfs"), _all_loads("ext4")


def code(project: Path = paths.PROJECT) -> str:
    """A fingerprint of the kernel code: comments, empty lines, tests and documentation change nothing."""
    digest = hashlib.sha256()
    overlay = tomllib.loads((project / "tools" / "overlay.toml").read_text())
    for name in sorted(overlay):
        if not re.search(lines.NOT_COUNTED, name):
            digest.update(f"{name}\n{lines.code(project / name)}\n".encode())
    for patch in sorted(project.glob("*/wiring.patch")):
        added = (line for line in patch.read_text().splitlines() if line.startswith(("+", "-")) and line[1:].strip())
        digest.update("\n".join(added).encode())
    return digest.hexdigest()[:12]


def _git(*arguments: str) -> bytes:
    command = ["git", "-c", f"safe.directory={paths.PROJECT}", "-C", str(paths.PROJECT), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


def code_of(revision: str) -> str:
    """The fingerprint of a revision."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            archive = _git("archive", revision, "rust", "mm", "fs", "block", "tools/overlay.toml")
        except subprocess.CalledProcessError:
            raise Failure(f"there is no revision {revision}; measure again") from None
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        return code(Path(folder))


def measured(path: Path, command: str) -> dict[str, Any]:
    """A result that was measured with today's code, its one revision in the setup; anything else is refused."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        setup = found["setup"]
        [revision] = setup["revisions"] if "revisions" in setup else [setup["revision"]]
        setup["revision"] = revision
    except (OSError, ValueError, KeyError, TypeError):
        raise Failure(f"{path.parent.name} has no result of one revision; run: {command}") from None
    if not re.fullmatch("[0-9a-f]{12}", revision):
        raise Failure(f"{path.parent.name} was measured with uncommitted changes; commit, then run: {command}")
    if code_of(revision) != code():
        raise Failure(f"{path.parent.name} is of {revision}, and the code has changed since; run: {command}")
    return found


def obtained(setup: dict[str, Any], command: str) -> str:
    """When, with what, and of which code."""
    date = setup["date"].partition(" ")[0]
    return f"`{command}`, {date}, revision {setup['revision']}, code {code()}"


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    ruler = ["---"] * left + ["---:"] * (len(header) - left)
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ruler, *rows))


def campaigns(title: str, parts: Sequence[Part]) -> str:
    """A page of what campaigns of the benchmark have measured."""
    text = [f"# {title}"]
    for part in parts:
        found = measured(part.folder / "results.json", part.command)
        report = (part.folder / "report.md").read_text()
        said = report.rpartition("Obtained by ")[2].partition(": ")[2].strip()
        text += [f"## {part.heading}", f"{obtained(found['setup'], part.command)}: {said}"]
        for heading in part.tables:
            table = re.search(rf"^{re.escape(heading)}:\n\n((?:\|.*\n)+)", report, re.MULTILINE)
            if not table:
                raise Failure(f"{part.folder.name} has no table {heading!r}; run: {part.command}")
            # Rows of one core over the other say nothing that the others do not.
            header, ruler, *rows = table[1].splitlines()
            rows = [header, ruler, *(row for row in rows if "/" not in row)]
            text += [f"{heading}:", "\n".join(rows)]
    text.append("[The benchmark](../rust_writeback/bench/README.md) explains the columns.")
    return "\n\n".join(text) + "\n"


def instructions() -> str:
    """micro.md: what single operations cost."""
    found = measured(paths.BUILD / "report" / "micro.json", "make micro")

    def beside(names: dict[str, str], what: str) -> str:
        values = {core: found["figures"][core] for core in micro.CORES}
        rows = [
            [text, *(f"{values[core][name]:.0f}" for core in micro.CORES), f"{found['ratios'][name]:.2f}"]
            for name, text in names.items()
        ]
        return _markdown((what, "C", "Rust", "Rust/C"), rows, 1)

    overwrites, rounds, files = found["overwrite"], found["rounds"], found["files"]
    writes = []
    for block in overwrite.BLOCKS:
        for size in overwrite.SIZES:
            for place in overwrite.PLACES:
                row = f"{block} pwrite {size} {place}"
                values = [f"{overwrites['figures'][core][row]:.0f}" for core in overwrite.CORES]
                about = [f"{block >> 10} KiB", f"{size >> 10} KiB", place]
                writes.append([*about, *values, f"{overwrites['ratios'][row]:.2f}"])
    most = max(overwrites["ratios"].values())
    worst = {core: max(overwrites["worst_over_start"][core].values()) for core in overwrite.CORES}
    few, many = (files[count] for count in micro.FILES)
    parts = [
        "# Instructions, C beside Rust",
        f"{obtained(found['setup'], 'make micro')}: a guest in which a tick is an instruction, one CPU, Linux"
        f" {found['setup']['kernel']}. A second run gives the same digits. [The"
        " benchmark](../rust_writeback/bench/README.md#instructions) explains the rows.",
        "## Operations",
        beside(micro.OPERATIONS, "operation"),
        "## Task switches for 1000 bios, 20 us apart",
        beside(micro.SWITCHES, "bios"),
        "## Dropping a folio whose writeback ends",
        beside(micro.DROPS, "folio"),
        "## The flusher",
        _markdown(
            ("a round for one page, beside dirty inodes of others", "C", "Rust"),
            [[dirty, *(f"{rounds[core][dirty]:.0f}" for core in micro.CORES)] for dirty in micro.ROUNDS],
            1,
        ),
        f"With Rust, a round that looks at as much as it may and writes nothing takes {found['look']:.0f} instructions"
        f" (limit {micro.LOOK_LIMIT}). If {micro.FILES[0]} files with one dirty page each are dirty when a round"
        f" begins, they take {few / 1e6:.1f} million. {micro.FILES[1]} files take {many / 1e6:.1f} million,"
        f" {many / few:.1f} times as much (limit {micro.FILES_LIMIT:.0f}).",
        "## Small writes into large folios",
        "Instructions of `pwrite` into a cached folio of 2 MiB on ext4, whose buffers are all up to date:",
        _markdown(("blocks", "size", "where in the folio", "C", "Rust", "Rust/C"), writes, 3),
        f"Rust/C is at most {most:.3f} in all {len(overwrites['ratios'])} rows, which include write, writev and"
        f" io_uring, and folios of all sizes. The worst place in a folio costs {worst['rust']:.2f} times as much as the"
        f" start, with C {worst['c']:.0f} times.",
    ]
    return "\n\n".join(parts) + "\n"


def promises() -> str:
    """conformance.md: which promises each core kept."""
    found = measured(paths.BUILD / "conformance" / "conformance.json", "make conformance")
    setup, rows = found["setup"], found["rows"]
    if setup["rows"] != "whole" or {core for row in rows for core in row["results"]} != set(micro.CORES):
        raise Failure("conformance has no complete result of both cores; run: make conformance")
    cells = [
        [row["promise"], f"`{row['name']}`"]
        + [cell for core in micro.CORES for cell in _verdict(row["results"][core])]
        for row in rows
    ]
    kept = {core: sum(row["results"][core]["verdict"] == "kept" for row in rows) for core in micro.CORES}
    parts = [
        "# Conformance results, C beside Rust",
        f"{obtained(setup, 'make conformance')}: Linux {setup['kernel']}, {setup['accelerator']}. C keeps {kept['c']}"
        f" of {len(rows)} rows, Rust {kept['rust']}. [The promises](../guest/conformance/README.md) say what each row"
        " tries.",
        _markdown(("promise", "row", "C", "figures of C", "Rust", "figures of Rust"), cells, 6),
        "## Results by place",
        "A place is kept if no page is cached one second after fsync, the counter is exact, and the data is right after"
        " a mount. The drive is an emulated NVMe drive, and the guest has four CPUs:",
        _markdown(("place", "C", "Rust"), where(rows), 3),
    ]
    return "\n\n".join(parts) + "\n"


def where(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The places where the rows were tried, and what was wrong there on each core."""
    found: list[list[str]] = []
    for row in rows:
        told = [row["results"][core].get("each", {}) for core in micro.CORES]
        for place in told[-1]:
            found.append([place, *(of_core.get(place, "not run") or "kept" for of_core in told)])
    return found


def _verdict(result: dict[str, Any]) -> list[str]:
    # A console stays where the row was tried.
    figures = result["figures"].partition("; the console is in ")[0]
    return [result["verdict"], figures.replace("|", r"\|")]


PAGES: dict[str, Callable[[], str]] = {
    "load": lambda: campaigns("Under load, C beside Rust", LOAD),
    "xfs": lambda: campaigns("All loads on xfs, C beside Rust", XFS),
    "ext4": lambda: campaigns("All loads on ext4, C beside Rust", EXT4),
    "micro": instructions,
    "conformance": promises,
}


AGED = ("price", "micro")
"""What has to be of the code that is there: counted, and so the same whenever it is measured. Pages of times say which
revision they are of: they take an hour or more, and differ more from run to run than from one revision to the next."""


@dataclass(frozen=True)
class Row:
    """A line of the README's table: a load, and ratios with their intervals: of either core, and of O_DIRECT with Rust."""

    load: str
    machine: str
    c: str
    rust: str
    direct: str


def _section(page: str, part: Part) -> str:
    return page.partition(f"\n## {part.heading}\n")[2].partition("\n## ")[0]


def readme_rows(page: str) -> list[Row]:
    """The README's rows, from the text of load.md."""
    rows = []
    for part in LOAD:
        lines_of_table = (line for line in _section(page, part).splitlines() if line[:1] == "|")
        table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines_of_table]
        columns = [number for number, title in enumerate(table[0] if table else []) if RATIO.match(title)]
        found = {(row[0], row[1]): [row[column] for column in columns] for row in reversed(table)}
        for name, text in part.loads.items():
            if (name, "C") not in found:
                name = name.removesuffix("-burst")  # as it was called until bursts were told apart
            if not columns or not {(name, "C"), (name, "Rust")} <= found.keys():
                raise Failure(f"load.md has no {name} of both cores in {part.heading!r}; run: make results")
            direct = "".join(found[name, "Rust"][1:]) or plots.NOT_RUN
            rows.append(Row(text, part.machine, found[name, "C"][0], found[name, "Rust"][0], direct))
    return rows


def readme_part(page: str) -> str:
    """What stands between the marks of the README."""
    revisions = dict.fromkeys(said for part in LOAD for said in REVISION.findall(_section(page, part)))
    rows = [[row.load, row.machine, row.c, row.rust, row.direct] for row in readme_rows(page)]
    said = f"Bandwidth divided by that of buffered writes, xfs, with 95 % intervals, of revision {', '.join(revisions)}:"
    ruler = "| load | machine | DONTCACHE: C | Rust | O_DIRECT, Rust |\n| --- | --- | ---: | ---: | ---: |"
    return "\n".join([said, "", ruler, *("| " + " | ".join(row) + " |" for row in rows), ""])


def with_part(readme: str, page: str) -> str:
    """The README with the part that load.md says."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise Failure(f"README.md lacks the marks of its table; put {BEGIN.strip()} and {END} around it")
    return before + begin + readme_part(page) + end + after


def picture(page: str) -> str:
    """The README's picture. It says of which figures it is: another matplotlib draws the same a bit differently."""
    rows = [(f"{row.load}, {row.machine}", row.c, row.rust, row.direct) for row in readme_rows(page)]
    svg = plots.draw_beside(rows)
    return f"<!-- {figures(page)} -->\n{svg}"


def figures(page: str) -> str:
    """A fingerprint of the README's rows."""
    return hashlib.sha256(readme_part(page).encode()).hexdigest()[:12]


def stale(project: Path = paths.PROJECT) -> list[str]:
    """What of the pages, of the README's table and of its picture is not of the code that is here."""
    now, wrong = code(project), []
    folder = project / "tools" / "results"
    for name in AGED:
        found = set(CODE.findall((folder / f"{name}.md").read_text()))
        if found != {now}:
            said = " and ".join(sorted(found)) or "no code"
            wrong.append(f"tools/results/{name}.md is of {said}, the code is {now}; measure again, then: make results")
    wrong += price_page.stale(project)
    page = (folder / "load.md").read_text()
    readme = (project / "README.md").read_text()
    if with_part(readme, page) != readme:
        wrong.append("the README's table differs from tools/results/load.md; run: make results")
    if figures(page) not in (folder / PICTURE.name).read_text().partition("\n")[0]:
        wrong.append("tools/results/beside.svg has other figures than tools/results/load.md; run: make results")
    return wrong


def main(arguments: list[str]) -> int:
    """Write the pages that are asked for, and what the README has of them."""
    parser = Parser(prog="results", description=__doc__)
    parser.add_argument("page", nargs="*", help=f"{', '.join(PAGES)}; all of them if none is named")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.page) - set(PAGES)):
        raise Failure(f"{', '.join(unknown)}: no such page; there are {', '.join(PAGES)}", 2)
    written = {name: PAGES[name]() for name in options.page or PAGES}
    for name, text in written.items():
        write_whole(FOLDER / f"{name}.md", text)
        print(f"tools/results/{name}.md")
    if page := written.get("load"):
        write_whole(PICTURE, picture(page))
        write_whole(README, with_part(README.read_text(), page))
        print("tools/results/beside.svg\nREADME.md")
    return 0
