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

`make conformance` tries to break six promises on both cores: no oops, an exact counter, a complete drop, no lost kick, a
kick that writes only its share, a bounded wait. Then it cuts the power. `--list` lists the rows, `--only
'exact_counter_*'` runs some of them, and the table goes to `build/conformance/`.

A row is a script in this folder. It must show that it reached the situation that it is about. An oops or a hang is a
result; the next row gets a new guest then, and also after a broken promise or a row that could not run. The command
fails if the Rust core breaks a promise, or if a row could not run on one of the cores. Failures of the C core are
reported but do not fail the command. A row that is known to break C must break it, because it proves nothing otherwise.
`make test` runs the rows on the Rust core, and the ones that depend on luck for a shorter time. It skips the rows that
need a second kernel with more drivers and file systems, and rows that compare times.

`make mutants` shows that the other rows can fail: each of them runs on a Rust core in which one line is wrong. Only the
rows for the kernel with more drivers are not tried so.
`tools/mutants.toml` has these lines, the rule that each breaks, and the rows or guest tests that must find it. The
command fails if a mutant survives, does not compile, or no longer fits the code. `ARGS='--only walk_*'` tries some
mutants, in one or two minutes each after the first kernel.

[Results of both cores](../../results/conformance.md). The first line of each script is its description here:
`{COMMAND}` writes this page.
"""


def shown_by(row: Row, listed: Iterable[Mutant]) -> str:
    """What has been seen to break a row."""
    found = [f"a core that breaks this rule: {mutant.rule}" for mutant in listed if row.name in mutant.rows]
    return "; ".join((["C"] if row.breaks_c else []) + found)


def page(rows: Sequence[Row], listed: Sequence[Mutant]) -> str:
    """The page."""
    parts = [HEAD]
    for promise in dict.fromkeys(row.promise for row in rows):
        parts.append(f"## {promise[0].upper()}{promise[1:]}\n\n| row | what it tries | what breaks it |\n| --- | --- | --- |")
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
