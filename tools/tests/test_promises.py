# SPDX-License-Identifier: GPL-2.0
"""The page of promises says what the rows say."""

from __future__ import annotations

from dataclasses import replace

from rust_writeback.check import promises
from rust_writeback.check.conformance import Row
from rust_writeback.check.mutants import Mutant

MUTANT = Mutant("stays", "what is read leaves", "file", "find", "replace", ("second",))


def test_the_page_is_not_older_than_the_rows() -> None:
    assert promises.PAGE.read_text() == promises.current(), f"make it anew: {promises.COMMAND}"


def test_a_row_is_told_with_what_breaks_it() -> None:
    rows = [
        Row("first", "no oops", "Nothing", breaks_c=True),
        Row("second", "no oops", "All"),
        Row("third", "other", "More", breaks_c=True),
    ]
    said = promises.page(rows, [replace(MUTANT, rows=("second", "third"))]).splitlines()
    assert "| `first` | Nothing | C |" in said
    assert "| `second` | All | a core that breaks this rule: what is read leaves |" in said
    assert "| `third` | More | C; a core that breaks this rule: what is read leaves |" in said
    assert [line for line in said if line.startswith("## ")] == ["## No oops", "## Other"]
