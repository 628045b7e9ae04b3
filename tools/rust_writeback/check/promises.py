# SPDX-License-Identifier: GPL-2.0
"""tools/guest/conformance/README.md: each promise, what is tried to break it, and what has been seen to break it.

It is made from the rows' own words and from tools/mutants.toml: a test fails when it is older.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..steps import write_whole
from . import conformance, mutants
from .conformance import Row
from .mutants import Listed

PAGE = conformance.ROWS / "README.md"
COMMAND = "tools/enter python3 -m rust_writeback.check.promises"

HEAD = f"""# What DONTCACHE promises

Each row is a script of this folder. `make conformance` runs it on both cores, and `make mutants` shows
that it can fail: on C, or on a Rust core in which a line is wrong. This page is made of the scripts' own
words: `{COMMAND}`.
"""


def shown_by(row: Row, listed: Listed) -> str:
    """What has been seen to break a row."""
    found = [mutant.rule for mutant in listed.mutants.values() if row.name in mutant.rows]
    found = (["C"] if row.breaks_c else []) + [f"a core without: {rule}" for rule in found]
    if row.name in listed.open:
        found.append(f"nothing yet: {listed.open[row.name]}")
    return "; ".join(found)


def page(rows: Sequence[Row], listed: Listed) -> str:
    """The page."""
    parts = [HEAD]
    for promise in dict.fromkeys(row.promise for row in rows):
        parts.append(f"## {promise[0].upper()}{promise[1:]}\n\n| row | what is tried | what breaks it |\n| --- | --- | --- |")
        parts += [
            f"| `{row.name}` | {row.tried} | {shown_by(row, listed)} |" for row in rows if row.promise == promise
        ]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def current() -> str:
    """The page as it has to be now."""
    rows = conformance.find_rows()
    return page(rows, mutants.read(rows=[row.name for row in rows]))


if __name__ == "__main__":
    write_whole(PAGE, current())
