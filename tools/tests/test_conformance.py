# SPDX-License-Identifier: GPL-2.0
"""The runner of the conformance rows: a row counts as kept only if it says so itself."""

from pathlib import Path

import pytest
from rust_writeback.check import conformance, promises
from rust_writeback.check.conformance import BROKEN, HANG, KEPT, NOT_RUN, Result, Row, WARNED
from rust_writeback.check.guest_tests import Counts
from rust_writeback.vm.in_turn import EARLY, Ended, SPOILT

from fake_guests import dies, plan, says, section

KEEPS = '{"kept": true, "figures": "2 of 2", "each": {"xfs": ""}}\n'
BREAKS = '{"kept": false, "figures": "1 of 0"}\n'
ROWS = [Row(name, "no oops", "x") for name in ("first", "second", "third")]


@pytest.mark.parametrize(
    ("ended", "verdict"),
    [
        (Ended("x", f"a word before\n{KEEPS}", 0, 1.0), KEPT),
        (Ended("x", BREAKS, SPOILT, 1.0), BROKEN),
        (Ended("x", BREAKS, 0, 1.0), NOT_RUN),
        (Ended("x", KEEPS, SPOILT, 1.0), NOT_RUN),
        (Ended("x", BREAKS, 1, 1.0), NOT_RUN),
        (Ended("x", f"{KEEPS}Traceback\n", 0, 1.0), NOT_RUN),
        (Ended("x", '{"kept": true}', 0, 1.0), NOT_RUN),
        (Ended("x", "", 0, 1.0), NOT_RUN),
        (Ended("x", KEEPS, 124, 1.0), HANG),
        (Ended("x", KEEPS, 0, 1.0, warned=True), WARNED),
        (Ended("x", KEEPS, 0, 1.0, kind=EARLY), NOT_RUN),
    ],
)
def test_a_row_is_kept_only_if_it_says_so_and_ends_well(ended: Ended, verdict: str) -> None:
    result = conformance.judge(ended)
    assert (result.verdict, result.each) == (verdict, {"xfs": ""} if verdict == KEPT else {})


def test_a_row_that_kills_the_guest_is_named_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    plan(monkeypatch, dies(section("first", KEEPS), b"\0begin second\n"), says(section("third", KEEPS)))
    results = conformance.run_rows(ROWS, "rust")
    assert {name: result.verdict for name, result in results.items()} == {"first": KEPT, "second": "oops", "third": KEPT}
    rust, c = (conformance.count({core: results}) for core in ("rust", "c"))
    assert (rust.passed, rust.failed) == (2, 1) and rust.problems[0].startswith("conformance: second on Rust: oops")
    assert c == Counts(3)


def test_what_the_kernel_says_in_its_log_alone_is_the_row_s_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    console = tmp_path / "console"
    complaint = "259:0: 7 pages were counted"
    console.write_text("\n".join(["guest script: first", "guest script: second", complaint, "guest script: third"]))
    plan(monkeypatch, says(*(section(row.name, KEEPS) for row in ROWS), complaint=complaint, console=console))
    results = conformance.run_rows(ROWS, "rust")
    assert [result.verdict for result in results.values()] == [KEPT, WARNED, KEPT]


def test_a_row_that_was_not_run_fails_the_command_on_either_core() -> None:
    for core in ("c", "rust"):
        assert conformance.count({core: {"first": Result(NOT_RUN, "")}}).failed == 1


def test_the_page_is_not_older_than_the_rows() -> None:
    assert promises.PAGE.read_text() == promises.current(), "make it anew: tools/enter python3 -m rust_writeback.check.promises"
