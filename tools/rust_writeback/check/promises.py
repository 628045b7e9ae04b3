# SPDX-License-Identifier: GPL-2.0
"""tools/guest/conformance/README.md: each promise, what is tried to break it, and what has been seen to break it.

It is made from the rows' own words and from tools/mutants.toml: a test fails when it is older.
"""

from collections.abc import Iterable, Sequence

from ..build.variants import MEASURED, STACKS
from ..steps import write_whole
from ..tables import markdown
from . import conformance, mutants
from .conformance import Row
from .mutants import Mutant

PAGE = conformance.ROWS / "README.md"
HEADER = ("row", "what it tries", "broken by C, or by a core that breaks this rule")


def shown_by(row: Row, listed: Iterable[Mutant]) -> str:
    """What has been seen to break a row."""
    found = [mutant.rule for mutant in listed if row.name in mutant.rows]
    return "; ".join((["C"] if row.breaks_c else []) + found)


def page(rows: Sequence[Row], listed: Sequence[Mutant], head: str) -> str:
    """The page: what stands above the tables is not made, but kept."""
    parts = [head]
    for promise in dict.fromkeys(row.promise for row in rows):
        cells = [[f"`{row.name}`", row.tried, shown_by(row, listed)] for row in rows if row.promise == promise]
        parts.append(f"## {promise[0].upper()}{promise[1:]}\n\n{markdown(HEADER, cells, 3)}")
    return "\n\n".join(parts) + "\n"


def current() -> str:
    """The page as it has to be now."""
    rows = conformance.find_rows((), MEASURED, STACKS)
    head = PAGE.read_text().partition("\n\n## ")[0]
    return page(rows, [*mutants.listed(rows).values()], head)


if __name__ == "__main__":
    write_whole(PAGE, current())
