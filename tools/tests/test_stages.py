# SPDX-License-Identifier: GPL-2.0
"""make test: nothing that goes wrong may get lost in the sum."""

import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path

import pytest
from rust_writeback.build import kernel
from rust_writeback.build.variants import Variant
from rust_writeback.check import conformance, guest_tests, host_tests, kunit, stages
from rust_writeback.check.guest_tests import Counts
from rust_writeback.errors import Failure

CARGO = """
running 2 tests
test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: {} 3 passed; {} failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""


@pytest.mark.parametrize(
    ("output", "status", "judged"),
    [
        (CARGO.format("ok.", 0), 0, (15, 0, 1)),
        (CARGO.format("ok.", 0), 101, (15, 1, 1)),
        (CARGO.format("FAILED.", 2), 101, (15, 2, 1)),
        ("...\n3 passed in 0.10s\n", 0, (3, 0, 0)),
        ("E 7 failed\n1 failed, 3 passed, 4 skipped, 2 errors in 75.20s (0:01:15)\n", 1, (3, 3, 4)),
        ("no tests ran in 0.01s\n", 0, (0, 1, 0)),
        ("", 0, (0, 1, 0)),
    ],
)
def test_results_of_cargo_and_pytest_are_counted(output: str, status: int, judged: tuple[int, int, int]) -> None:
    counts = host_tests.judged("x", output, status)
    assert (counts.passed, counts.failed, counts.skipped) == judged
    assert bool(counts.failed) == bool(counts.problems)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["--sanitize", "kasan"], ["kernel-kasan", "tests-kasan", "rows-kasan"]),
        (["--rt"], ["kunit-rt", "kernel-rt", "tests-rt", "rows-rt"]),
        (["--arch=arm64", "--pages=64k"], ["kunit-arm64-64k", "kernel-arm64-64k", "tests-arm64-64k", "rows-arm64-64k"]),
    ],
)
def test_another_kernel_has_stages_of_its_own(monkeypatch: pytest.MonkeyPatch, words: list[str], asked: list[str]) -> None:
    ran: list[str] = []

    def note(what: str, *arguments: object) -> Counts:
        ran.extend(f"{what}{one.suffix}" for one in arguments if isinstance(one, Variant))
        ran.extend(one.name for one in arguments if isinstance(one, kunit.Platform))
        return Counts(3)

    monkeypatch.setattr(stages, "write_junit", lambda _: None)
    monkeypatch.setattr(kunit, "run", partial(note, ""))
    monkeypatch.setattr(kernel, "ensure", partial(note, "kernel"))
    monkeypatch.setattr(guest_tests, "run", partial(note, "tests"))
    monkeypatch.setattr(conformance, "short", partial(note, "rows"))
    assert stages.main(words) == 0
    assert ran == asked


def test_the_sum_and_junit_have_each_stage_and_each_problem(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stages, "JUNIT", tmp_path / "junit.xml")
    def full() -> Counts:
        raise Failure("the disk is full")

    good = ("good", lambda: Counts(passed=3, skipped=1))
    crashes = ("crashes", lambda: Counts(passed=3 // 0))
    monkeypatch.setattr(stages, "STAGES", [good, ("full", full), crashes, ("empty", Counts)])
    assert stages.main([]) == 1
    problems = ["full: the disk is full", "crashes: integer division or modulo by zero", "empty: ran no test"]
    told = [*(f"failed: {problem}" for problem in problems), "3 passed, 3 failed, 1 skipped"]
    assert capsys.readouterr().out.splitlines()[-4:] == told
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert [failure.get("message") for failure in suites.iter("failure")] == problems
    monkeypatch.setattr(stages, "STAGES", [good])
    assert stages.main([]) == 0


def test_parts_have_stages_that_there_are() -> None:
    assert [name for name, _ in stages.part("host", None)] == list(stages.HOST)
    assert [name for name, _ in stages.part("check", None)] == [*stages.CHECK, "guest tests"]


def test_the_night_has_every_kernel_and_no_stage_twice() -> None:
    names = [name for name, _ in stages.part("nightly", None)]
    assert len(names) == len({*names})
    for end in ("kasan", "kcsan", "kmemleak", "lockdep", "rt", "ubsan", "4k", "64k"):
        assert any(name.startswith("guest tests") and name.endswith(end) for name in names), end
    assert not {*names} & {name for name, _ in stages.STAGES if name != "kernel"}


def test_a_command_that_fails_is_a_failed_stage() -> None:
    assert stages._command(lambda words: words != ["--check"], "--check") == Counts(passed=1)
    assert stages._command(lambda _: 1).failed == 1
