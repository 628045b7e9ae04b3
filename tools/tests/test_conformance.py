# SPDX-License-Identifier: GPL-2.0
"""A row counts as kept only if it says so itself, and each mutant has to break its rows."""

from dataclasses import replace
from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.build.variants import MEASURED
from rust_writeback.check import conformance, mutants, promises
from rust_writeback.check.conformance import BROKEN, HANG, KEPT, NOT_RUN, Result, Row, WARNED
from rust_writeback.check.guest_tests import Counts
from rust_writeback.check.mutants import Mutant
from rust_writeback.errors import Failure
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
def test_a_row_is_kept_only_if_it_prints_so_and_exits_with_0(ended: Ended, verdict: str) -> None:
    result = conformance.judge(ended)
    assert (result.verdict, result.each) == (verdict, {"xfs": ""} if verdict == KEPT else {})


def test_a_row_that_kills_the_guest_is_named_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    plan(monkeypatch, dies(section("first", KEEPS), b"\0begin second\n"), says(section("third", KEEPS)))
    results = conformance.run_rows(ROWS, "rust")
    assert {name: result.verdict for name, result in results.items()} == {"first": KEPT, "second": "oops", "third": KEPT}
    rust, c = (conformance.count({core: results}) for core in ("rust", "c"))
    assert (rust.passed, rust.failed) == (2, 1) and rust.problems[0].startswith("conformance: second on Rust: oops")
    assert c == Counts(3)


def test_a_kernel_message_belongs_to_the_row_that_ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


FILE = "fs/dontcache_kick.rs"
ROW = "no_lost_kick_no_periodic"
MUTANT = Mutant("wakes_nobody", "a kick wakes the flusher", FILE, "wb.wakeup();", "", [ROW])
LISTED = mutants.read()


@pytest.mark.parametrize(
    ("verdict", "expected", "wrong"),
    [
        (BROKEN, BROKEN, ""),
        (KEPT, BROKEN, "survived"),
        (HANG, BROKEN, "is not broken but hang"),
        (NOT_RUN, BROKEN, "is not broken but not run"),
        (KEPT, KEPT, "survived"),
    ],
)
def test_a_mutant_is_found_only_by_the_verdict_in_its_list(verdict: str, expected: str, wrong: str) -> None:
    assert mutants.wrong(replace(MUTANT, verdict=expected), Result(verdict, "")) == wrong


def test_a_kernel_that_cannot_be_built_or_booted_fails_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise Failure("no drive")

    monkeypatch.setattr(mutants, "build", fail)
    assert mutants.attempt(MUTANT, "") == {ROW: Result(NOT_RUN, "no drive")}
    monkeypatch.setattr(mutants, "build", lambda *_: None)
    monkeypatch.setattr(conformance, "run_rows", fail)
    assert mutants.attempt(MUTANT, "") == {ROW: Result(NOT_RUN, "no drive")}


@pytest.mark.parametrize("content", ["a\n", "wb.wakeup();\nwb.wakeup();\n"])
def test_a_line_that_is_not_there_once_does_not_apply(content: str) -> None:
    with pytest.raises(Failure, match=f"{FILE} once, not {content.count('wakeup')} times"):
        MUTANT.apply(content)


@pytest.mark.parametrize(
    ("found_by", "said"),
    [('rows = ["no_lost_kick_y"]', "names no_lost_kick_y"), ("rows = []", "names nothing")],
)
def test_a_mistake_in_the_list_of_mutants_is_refused(tmp_path: Path, found_by: str, said: str) -> None:
    path = tmp_path / "mutants.toml"
    path.write_text(f'[mutants.x]\nrule = "r"\nfile = "{FILE}"\nfind = "a"\nreplace = ""\n{found_by}\n')
    with pytest.raises(Failure, match=said):
        mutants.read(path)


def test_a_mutated_file_is_restored_and_compiled_again(tmp_path: Path) -> None:
    tree, above = tmp_path / "linux", tmp_path / "above"
    other = replace(MUTANT, file="mm/rust_writeback.c", find="c", replace="d")
    for file, content in ((tree / FILE, "a\n    wb.wakeup();\nb\n"), (tree / other.file, "c\n"), (above / "fs" / "gone.rs", "")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    assert mutants.lay(MUTANT, above, tree) == [(above / FILE, tree / FILE)]
    changed = (above / FILE).stat().st_mtime_ns
    assert (above / FILE).read_text() == "a\n    \nb\n"
    assert (tree / FILE).read_text() == "a\n    wb.wakeup();\nb\n"
    assert len(mutants.lay(other, above, tree)) == 2
    assert (above / FILE).read_text() == (tree / FILE).read_text()
    assert (above / FILE).stat().st_mtime_ns > changed


@pytest.mark.parametrize("mutant", LISTED, ids=lambda mutant: mutant.name)
def test_each_mutant_applies(mutant: Mutant) -> None:
    ours = paths.PROJECT / mutant.file
    mutant.apply((ours if ours.is_file() else paths.LINUX / mutant.place()).read_text())


def test_each_row_breaks_c_or_has_a_mutant() -> None:
    rows = conformance.find_rows(variant=MEASURED)
    covered = {name for mutant in LISTED for name in mutant.rows}
    assert rows and not [row.name for row in rows if not row.breaks_c and row.name not in covered]
