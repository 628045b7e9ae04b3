# SPDX-License-Identifier: GPL-2.0
"""tools/guest/conformance/README.md: each promise, what is tried to break it, and what has been seen to break it.

It is made from the rows' own words and from tools/mutants.toml: a test fails when it is older.
"""

from ..steps import write_whole
from ..tables import markdown
from . import conformance, mutants

PAGE = conformance.ROWS / "README.md"
HEADER = ("row", "what it tries", "broken by C, or by a core that breaks this rule")


def current() -> str:
    """The page as it has to be now: what stands above the tables is not made, but kept."""
    parts = [PAGE.read_text().partition("\n\n## ")[0]]
    rows, listed = conformance.find_rows(), mutants.read()
    for promise in dict.fromkeys(row.promise for row in rows):
        cells = []
        for row in (row for row in rows if row.promise == promise):
            broken_by = ["C"] * row.breaks_c + [mutant.rule for mutant in listed if row.name in mutant.rows]
            cells.append([f"`{row.name}`", row.tried, "; ".join(broken_by)])
        parts.append(f"## {promise[0].upper()}{promise[1:]}\n\n{markdown(HEADER, cells, 3)}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    write_whole(PAGE, current())
