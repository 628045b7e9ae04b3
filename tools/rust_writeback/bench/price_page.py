# SPDX-License-Identifier: GPL-2.0
"""Writes the result of make price as a page, and as the first table of the README."""

from collections.abc import Mapping
from typing import Any

from ..errors import Failure
from . import pages

BEGIN, END = "<!-- make price -->\n", "<!-- to here, price -->"

MODES = {"buffered": "buffered", "dontcache": "DONTCACHE", "direct": "O_DIRECT"}
LOADS = {
    "new": "new file",
    "disk": "overwrite, on disk",
    "cached": "overwrite, cached",
    "append": "append",
    "random": "random overwrite, on disk",
    "short": "new file, the data not in memory",
}
PLACES = {"xfs": "xfs", "ext4": "ext4", "ext4-journal": "ext4, data=journal", "device": "block device"}
SIZES = {"700": "700 bytes", "4k": "4 KiB", "64k": "64 KiB", "1m": "1 MiB"}
MEMORY = ("fits", "larger")

Document = Mapping[str, Any]


def _rows(document: Document, memory: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The cells by row and mode. What is written directly does not depend on memory."""
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for name, cores in document["cells"].items():
        *row, found_memory, mode = name.split("/")
        if found_memory == memory:
            rows.setdefault("/".join(row), {})[mode] = cores
    return rows


def _line(row: str, modes: Mapping[str, Any]) -> list[str]:
    place, load, size = row.split("/")
    cells = [PLACES[place], LOADS[load], SIZES[size]]
    for mode in MODES:
        if mode not in modes:
            cells += ["", "", ""]
            continue
        c, rust = (modes[mode][core] for core in ("c", "rust"))
        mark = " *" if c["stays"] != rust["stays"] else ""
        cells += [f"{c['instructions'] / 1000:.1f}{mark}", f"{rust['instructions'] / 1000:.1f}"]
        cells.append("" if mark else f"{rust['instructions'] / c['instructions']:.3f}")
    beside = modes["dontcache"]["rust"]["instructions"] / modes["buffered"]["rust"]["instructions"] if "dontcache" in modes else 0
    return [*cells, f"{beside:.2f}"]


def page(document: Document) -> str:
    """tools/results/price.md."""
    header = ["place", "load", "write", *(name for mode in MODES.values() for name in (f"{mode}: C", "Rust", "Rust/C"))]
    header.append("DONTCACHE/buffered, Rust")
    tables = {memory: [_line(row, modes) for row, modes in _rows(document, memory).items()] for memory in MEMORY}
    return pages.render("price.md", setup=document["setup"], header=header, **tables)


def readme_part(document: Document) -> str:
    """The first table of the README."""
    return pages.render("readme-price.md", setup=document["setup"], cells=document["cells"], sizes=SIZES)


def between(readme: str, begin: str, end: str, part: str) -> str:
    """The README with this part between its marks."""
    before, found, rest = readme.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise Failure(f"README.md lacks the marks of a table; put {begin.strip()} and {end} around it")
    return before + begin + part + end + after
