# SPDX-License-Identifier: GPL-2.0
"""make mutants: a row that does not find its mutant, or cannot tell, is never passed over."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.check import conformance, guest_tests, mutants
from rust_writeback.check.conformance import BROKEN, HANG, KEPT, NOT_RUN, Result, Row
from rust_writeback.check.guest_tests import Counts
from rust_writeback.errors import Failure
from rust_writeback.check.mutants import Mutant, NOT_APPLIED, NOT_BUILT, SURVIVED
from rust_writeback.vm import emulated

FILE = "fs/dontcache_kick.rs"
MUTANT = Mutant("wakes_nobody", "a kick wakes the flusher", FILE, "wb.wakeup();", "", ("no_lost_kick_x",))
LISTED = mutants.listed(conformance.find_rows())

ENTRY = """
[mutants.wakes_nobody]
rule = "a kick wakes the flusher"
file = "fs/dontcache_kick.rs"
find = "wb.wakeup();"
replace = ""
rows = ["no_lost_kick_x"]
"""


@pytest.fixture(autouse=True)
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel tree with the file that the mutant changes."""
    tree = tmp_path / "linux"
    (tree / "fs").mkdir(parents=True)
    (tree / FILE).write_text("a\n    wb.wakeup();\nb\n")
    monkeypatch.setattr(paths, "LINUX", tree)
    return tree


def read(tmp_path: Path, text: str) -> dict[str, Mutant]:
    (tmp_path / "mutants.toml").write_text(text)
    return mutants.read(tmp_path / "mutants.toml", ["no_lost_kick_x"], ["test_x:rests"])


def run(results: Mapping[str, Result], mutant: Mutant = MUTANT) -> tuple[list[str], list[str]]:
    """What the rows of one mutant are said to have said, and what was wrong."""
    lines, problems = mutants.run([mutant], lambda mutant: None, lambda mutant: results)
    return [result.verdict for _, _, result in lines], problems


def test_a_row_that_finds_its_mutant_is_right() -> None:
    assert run({"no_lost_kick_x": Result(BROKEN, "not written")}) == ([BROKEN], [])


def test_a_survivor_fails_and_is_named() -> None:
    verdicts, problems = run({"no_lost_kick_x": Result(KEPT, "6 ms")})
    assert verdicts == [KEPT]
    assert problems == [f"wakes_nobody: no_lost_kick_x {SURVIVED}: 6 ms"]


@pytest.mark.parametrize("results", [{"no_lost_kick_x": Result(NOT_RUN, "no drive")}, {}])
def test_a_row_that_was_not_run_fails(results: dict[str, Result]) -> None:
    verdicts, problems = run(results)
    assert verdicts == [NOT_RUN]
    assert len(problems) == 1 and "no_lost_kick_x could not be run" in problems[0]


def test_a_row_has_to_come_to_the_end_that_is_foretold() -> None:
    assert run({"no_lost_kick_x": Result(HANG, "")})[1] == ["wakes_nobody: no_lost_kick_x is not broken but hang: "]
    assert run({"no_lost_kick_x": Result(HANG, "")}, replace(MUTANT, verdict=HANG))[1] == []


@pytest.mark.parametrize("content", ["a\n", "wb.wakeup();\nwb.wakeup();\n"])
def test_a_line_that_is_not_there_once_does_not_apply(tree: Path, content: str) -> None:
    (tree / FILE).write_text(content)
    lines, problems = mutants.run([MUTANT], lambda mutant: pytest.fail("was built"), lambda mutant: {})
    assert [result.verdict for _, _, result in lines] == [NOT_APPLIED]
    assert len(problems) == 1 and f"{FILE} once, not {content.count('wakeup')} times" in problems[0]


def test_a_file_that_is_not_ours_does_not_apply() -> None:
    assert run({}, replace(MUTANT, file="fs/namei.c"))[0] == [NOT_APPLIED]


def test_what_does_not_build_fails_and_the_next_is_tried() -> None:
    def make(mutant: Mutant) -> None:
        if mutant is MUTANT:
            raise Failure("the kernel build failed")

    other = replace(MUTANT, name="other")
    lines, problems = mutants.run([MUTANT, other], make, lambda mutant: {"no_lost_kick_x": Result(BROKEN, "")})
    assert [result.verdict for _, _, result in lines] == [NOT_BUILT, BROKEN]
    assert len(problems) == 1 and problems[0].startswith("wakes_nobody does not build")


@pytest.mark.parametrize(
    ("counts", "verdict", "why"),
    [
        (Counts(3, 2, cases=["others", "rests"]), BROKEN, ""),
        (Counts(4, 1, cases=["others"]), KEPT, "survived"),
        (Counts(5), KEPT, "survived"),
        (Counts(), NOT_RUN, "could not be run"),
    ],
)
def test_a_guest_test_finds_a_mutant_by_the_case_that_is_named(counts: Counts, verdict: str, why: str) -> None:
    mutant = replace(MUTANT, rows=(), tests=("test_x:rests",))
    verdicts, problems = run({"test_x:rests": mutants.of_test(counts, "rests")}, mutant)
    assert verdicts == [verdict]
    assert [why in problem for problem in problems] == ([True] if why else [])


def test_a_guest_test_that_dies_has_found_nothing() -> None:
    counts = Counts(4, 1, cases=["rests"])
    counts.fail("test_x on rust: oops")
    assert mutants.of_test(counts, "rests").verdict == NOT_RUN


def test_nothing_is_tried_but_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_tests, "run_core", lambda core, scripts, *_, **__: Counts(len(scripts)))
    monkeypatch.setattr(conformance, "run_rows", lambda *_: pytest.fail("a row was run"))
    results = mutants.attempt(replace(MUTANT, rows=(), tests=("test_x:rests",)), emulated.Boots())
    assert {name: result.verdict for name, result in results.items()} == {"test_x:rests": KEPT}


def test_mutants_are_chosen_by_their_name_and_by_their_rows() -> None:
    both = replace(MUTANT, rows=("no_lost_kick_x", "no_oops_y"))
    assert mutants.choose([both], ["wakes_*"]) == [both]
    assert mutants.choose([both], ["*_y"]) == [replace(both, rows=("no_oops_y",))]
    assert mutants.choose([both], ["*_z"]) == []
    tested = replace(both, tests=("test_z:rests",))
    assert mutants.choose([tested], ["test_*"]) == [replace(tested, rows=())]


def test_a_row_that_there_is_not_is_refused(tmp_path: Path) -> None:
    assert list(read(tmp_path, ENTRY)) == ["wakes_nobody"]
    with pytest.raises(Failure, match="no_lost_kick_y, which does not exist"):
        read(tmp_path, ENTRY.replace("kick_x", "kick_y"))


def test_a_mutant_may_have_guest_tests_that_there_are(tmp_path: Path) -> None:
    tested = ENTRY.replace('rows = ["no_lost_kick_x"]', 'tests = ["test_x:rests"]')
    assert read(tmp_path, tested)["wakes_nobody"].finders == ("test_x:rests",)
    with pytest.raises(Failure, match="tools/guest/tests has no such file:case"):
        read(tmp_path, tested.replace("rests", "runs"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('rule = "a kick wakes the flusher"\n', ""),
        ('find = "wb.wakeup();"', 'find = " "'),
        ('rows = ["no_lost_kick_x"]', ""),
        ('rows = ["no_lost_kick_x"]', 'rows = ["no_lost_kick_x"]\nverdict = "kept"'),
        ('replace = ""', 'replace = ""\nwith = ""'),
        ('replace = ""', "replace = 3"),
        ('rows = ["no_lost_kick_x"]', 'rows = "no_lost_kick_x"'),
    ],
)
def test_what_is_written_down_wrong_is_refused_in_one_line(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(Failure) as refused:
        read(tmp_path, ENTRY.replace(old, new))
    assert len(str(refused.value).splitlines()) == 1


def test_what_was_changed_is_changed_back_and_compiled_again(tree: Path, tmp_path: Path) -> None:
    above = tmp_path / "above"
    assert mutants.lay(MUTANT, above, tree) == [(above / FILE, tree / FILE)]
    assert (above / FILE).read_text() == "a\n    \nb\n"
    assert (tree / FILE).read_text() == "a\n    wb.wakeup();\nb\n"
    other = replace(MUTANT, file="mm/rust_writeback.c", find="c", replace="d")
    (tree / "mm").mkdir()
    (tree / other.file).write_text("c\n")
    assert len(mutants.lay(other, above, tree)) == 2
    assert (above / FILE).read_text() == (tree / FILE).read_text()
    assert (above / FILE).stat().st_mtime_ns > (tree / FILE).stat().st_mtime_ns


def test_a_file_that_is_gone_is_not_laid_above_anything(tree: Path, tmp_path: Path) -> None:
    above = tmp_path / "above"
    (above / "fs").mkdir(parents=True)
    (above / "fs" / "gone.rs").write_text("x")
    assert mutants.lay(MUTANT, above, tree) == [(above / FILE, tree / FILE)]
    assert not (above / "fs" / "gone.rs").exists()


@pytest.mark.parametrize("mutant", LISTED.values(), ids=list(LISTED))
def test_each_mutant_applies(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "LINUX", paths.BUILD / "linux")
    place = mutant.place()
    ours = paths.PROJECT / mutant.file
    mutant.apply((ours if ours.is_file() else paths.LINUX / place).read_text())


def test_each_row_breaks_c_or_has_a_mutant() -> None:
    assert mutants.uncovered(conformance.find_rows(), LISTED.values()) == []


def test_a_row_without_any_of_that_is_named() -> None:
    rows = [Row("a", "p", "t", breaks_c=True), Row("b", "p", "t"), Row("c", "p", "t")]
    assert mutants.uncovered(rows, [replace(MUTANT, rows=("b",))]) == ["c"]
