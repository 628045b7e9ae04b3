# SPDX-License-Identifier: GPL-2.0
"""make test: nothing that goes wrong may get lost in the sum."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rust_writeback.build import kernel
from rust_writeback.check import conformance, guest_tests, host_tests, kunit, stages
from rust_writeback.errors import Failure
from rust_writeback.check.guest_tests import Counts
from rust_writeback.build.variants import Variant

CARGO = """
running 2 tests
test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""


def test_cargo_is_summed_over_programs() -> None:
    counts = host_tests.parse_cargo(CARGO)
    assert (counts.passed, counts.failed, counts.skipped) == (15, 2, 1)


def test_junit_is_counted() -> None:
    text = '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>'
    counts = host_tests.parse_junit(text)
    assert (counts.passed, counts.failed, counts.skipped) == (3, 3, 3)


@pytest.mark.parametrize(
    ("counts", "status", "failed"),
    [(Counts(3), 0, 0), (Counts(3), 101, 1), (Counts(), 0, 1), (Counts(3, 1), 101, 1)],
)
def test_bad_ends_are_failures(counts: Counts, status: int, failed: int) -> None:
    judged = host_tests.judged("x", counts, status)
    assert judged.failed == failed
    assert bool(judged.problems) == bool(failed)


def _raise(error: Exception) -> Callable[[], Counts]:
    def stage() -> Counts:
        raise error

    return stage


@pytest.mark.parametrize("stage", [_raise(Failure("no disk")), _raise(OSError(5, "bad disk")), Counts])
def test_stage_that_breaks_down_counts_as_one_failure(stage: Callable[[], Counts]) -> None:
    counts = stages.run_stage("x", stage)
    assert (counts.passed, counts.failed) == (0, 1)
    assert counts.problems[0].startswith("x: ")


def test_a_sanitizer_has_stages_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []

    def ensure(variant: Variant) -> None:
        asked.append(variant.name)

    def run(names: Sequence[str], cores: Sequence[str], variant: Variant) -> Counts:
        asked.append(f"{variant.name} {list(names)} {list(cores)}")
        return Counts(3)

    def short(variant: Variant, rows: Sequence[str]) -> Counts:
        asked.append(f"{variant.name} {list(rows)}")
        return Counts(2)

    monkeypatch.setattr(kernel, "ensure", ensure)
    monkeypatch.setattr(guest_tests, "run", run)
    monkeypatch.setattr(conformance, "short", short)
    assert stages.main(["--sanitize", "kasan"]) == 0
    assert asked == ["kasan", "kasan [] ['rust', 'c']", "kasan ['exact_counter_*']"]
    out = capsys.readouterr().out
    assert "only the tests that use this kernel" in out and out.splitlines()[-1] == "6 passed, 0 failed, 0 skipped"


def test_another_architecture_has_stages_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def note(what: str) -> Callable[..., Counts]:
        def run(*arguments: object, **named: object) -> Counts:
            (variant,) = [one for one in (*arguments, *named.values()) if isinstance(one, (Variant, kunit.Platform))]
            asked.append(f"{what}{variant.suffix}")
            return Counts(3)

        return run

    for module, name in ((kunit, "run"), (guest_tests, "run"), (conformance, "short")):
        monkeypatch.setattr(module, name, note(name))
    monkeypatch.setattr(kernel, "ensure", note("kernel"))
    assert stages.main(["--arch", "arm64", "--pages", "64k"]) == 0
    assert asked == ["run-arm64-64k", "kernel-arm64-64k", "run-arm64-64k", "short-arm64-64k"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--arch", "riscv"], "give x86 or arm64"),
        (["--arch", ""], "give x86 or arm64"),
        (["--pages", "64k"], "x86 has one size of pages"),
        (["--arch", "arm64", "--pages", "8k"], "arm64 has PAGES=4k, 16k and 64k"),
        (["--arch", "arm64", "--pages", ""], "arm64 has PAGES=4k, 16k and 64k"),
        (["--arch", "arm64", "--sanitize", "kasan"], "SANITIZE and RT are for x86"),
        (["--rt", "--sanitize", "kasan"], "SANITIZE and RT need different kernels"),
    ],
)
def test_what_there_is_not_is_told_before_anything_runs(words: list[str], said: str) -> None:
    with pytest.raises(Failure, match=said):
        stages.main(words)


def test_an_unknown_sanitizer_runs_nothing() -> None:
    with pytest.raises(Failure, match="kasan, kcsan"):
        stages.main(["--sanitize", "asan"])


def test_last_line_is_the_sum(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(stages, "STAGES", [("a", lambda: Counts(2, 0, 1)), ("b", _raise(Failure("gone")))])
    assert stages.main([]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == ["failed: b: gone", "2 passed, 1 failed, 1 skipped"]
    monkeypatch.setattr(stages, "STAGES", [("a", lambda: Counts(2, 0, 1))])
    assert stages.main([]) == 0


def test_junit_has_each_stage_and_each_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stages, "JUNIT", tmp_path / "junit.xml")
    good = ("good", lambda: Counts(passed=3, skipped=1))
    monkeypatch.setattr(stages, "STAGES", [good, ("breaks", _raise(Failure("the disk is full; free some space"))), ("empty", Counts)])
    assert stages.main([]) == 1
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in suites] == [
        *(("good", "4", "0"), ("breaks", "1", "1"), ("empty", "1", "1"))
    ]
    messages = [failure.get("message") for failure in suites.iter("failure")]
    assert messages == ["breaks: the disk is full; free some space", "empty: ran no test"]


def test_parts_have_stages_that_there_are() -> None:
    names = {name for name, _ in stages.STAGES}
    assert {*stages.HOST, *stages.CHECK} <= names
    assert [name for name, _ in stages.part("host", None)] == list(stages.HOST)
    assert [name for name, _ in stages.part("check", None)] == [*stages.CHECK, "guest tests"]


def test_the_night_has_every_kernel_and_no_stage_twice() -> None:
    names = [name for name, _ in stages.part("nightly", None)]
    assert len(names) == len({*names})
    for end in ("kasan", "kcsan", "kmemleak", "lockdep", "rt", "ubsan", "4k", "64k"):
        assert any(name.startswith("guest tests") and name.endswith(end) for name in names), end
    assert not {*names} & {name for name, _ in stages.STAGES if name != "kernel"}


def test_a_command_that_fails_is_a_failed_stage() -> None:
    def command(words: list[str]) -> int:
        return words != ["--check"]

    assert stages._command(command, "--check").passed == 1
    assert stages._command(command).problems == ["test_stages: failed; the lines above say what"]
