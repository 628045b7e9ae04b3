# SPDX-License-Identifier: GPL-2.0
"""tools/guest/conformance/README.md: each promise, what is tried to break it, and what has been seen to break it.

It is made from the rows' own words and from tools/mutants.toml: a test fails when it is older.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..build.variants import MEASURED, STACKS
from ..steps import write_whole
from . import conformance, mutants
from .conformance import Row
from .mutants import Mutant

PAGE = conformance.ROWS / "README.md"
COMMAND = "tools/enter python3 -m rust_writeback.check.promises"

HEAD = f"""# What DONTCACHE promises

`make conformance` tries to break six promises on either core: no oops, an exact counter, a complete drop, no lost
kick, a kick that writes only its share, a bounded wait. Then it cuts the power. `--list` says what there is, `--only
'exact_counter_*'` runs some; the table goes to `build/conformance/`.

A row is a script of this folder, and has to show that it came to what it tries. An oops or a hang is its result; the
rows after it, after a broken promise, or after one that could not be run get a new guest. The command fails where the
Rust core breaks a promise, and where a row could not be run on either core. Of the C it tells; but a row that is known
to break C has to, or it proves nothing. `make test` runs the scripts on the Rust core, those of luck for less time. It
leaves out rows that need a kernel of their own, with drivers for what people put between a file system and a drive.

`make mutants` shows that the rows can fail: those that C does not break run on a Rust core in which one line is wrong.
`tools/mutants.toml` has the lines, the rule that each breaks, and the rows that have to find it; or, where a rule is
no promise but how one is kept, the guest tests. What finds nothing fails the command, and so does a line that no longer
is where it was, or does not compile. `ARGS='--only walk_*'` tries some of them, in a minute or two each; the first
kernel takes as long as any.

[What either core does of them](../../results/conformance.md). This page is made of the scripts' own words:
`{COMMAND}`.
"""


def shown_by(row: Row, listed: Iterable[Mutant]) -> str:
    """What has been seen to break a row."""
    found = [f"a core without: {mutant.rule}" for mutant in listed if row.name in mutant.rows]
    return "; ".join((["C"] if row.breaks_c else []) + found)


def page(rows: Sequence[Row], listed: Sequence[Mutant]) -> str:
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
    rows = conformance.find_rows((), MEASURED, STACKS)
    return page(rows, [*mutants.listed(rows).values()])


if __name__ == "__main__":
    write_whole(PAGE, current())
