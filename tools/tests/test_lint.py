# SPDX-License-Identifier: GPL-2.0
"""A linter or a litmus test that looks at nothing or says nothing is no success; unsafe is counted as it is listed."""

from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.check import lines, lint, litmus
from rust_writeback.check.guest_tests import Counts
from rust_writeback.errors import Failure

TEXT = """\
// The word unsafe in a comment is none.
unsafe fn a() {}
fn b() {
    // SAFETY: Nothing is asked.
    unsafe { a() }
}
"""


@pytest.mark.parametrize(
    ("allowed", "told"),
    [('"a.rs" = 2', 0), ('"a.rs" = 1', 1), ('"a.rs" = 3', 1), ("", 1), ('"a.rs" = 2\n"gone.rs" = 1', 1)],
)
def test_more_or_less_unsafe_than_allowed_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, allowed: str, told: int
) -> None:
    (tmp_path / "a.rs").write_text(TEXT)
    (tmp_path / "pure.rs").write_text("fn c() {}\n")
    (tmp_path / "unsafe.toml").write_text(allowed)
    monkeypatch.setattr(paths, "PROJECT", tmp_path)
    monkeypatch.setattr(lint, "UNSAFE", tmp_path / "unsafe.toml")
    assert len(lint.unsafe([tmp_path / "a.rs", tmp_path / "pure.rs"]).splitlines()) == told


def test_a_linter_without_files_or_that_does_not_start_fails() -> None:
    def breaks(_: list[Path]) -> str:
        raise Failure("the kernel does not build")

    assert lint.judge([], lambda _: "") == "it found no file"
    assert lint.judge([Path("a")], breaks) == "the kernel does not build"
    assert lint.judge([Path("a")], lambda _: lint._said(["false"])) == "not clean"
    assert lint.judge([Path("a")], lambda _: lint._said(["true"])) is None


def test_all_files_belong_to_a_mechanism() -> None:
    table, hooks = lines.counted()
    assert all(sum(row.values()) for row in table.values()) and hooks > 0


def herd(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A herd7 that does this with the test as its first argument."""
    monkeypatch.setattr(litmus, "herd_command", lambda: ["sh", "-c", script, "herd7"])


def write(folder: Path, name: str, result: str) -> None:
    (folder / f"{name}.litmus").write_text(f"C {name}\n\n(*\n * Result: {result}\n *)\n")


def test_each_is_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    herd(monkeypatch, "echo Observation x Never 0 3")
    assert litmus.run(tmp_path, tmp_path) == Counts()
    write(tmp_path, "ours", "Never")
    write(tmp_path, "theirs", "Sometimes")
    assert litmus.run(tmp_path, tmp_path) == Counts(1, 1, problems=["litmus: theirs: expected Sometimes, got Never"])


@pytest.mark.parametrize(
    ("script", "result", "said"),
    [
        ("echo odd >&2", "Never", "no verdict on ours.litmus: odd"),
        ("echo Observation x Never 0 3; exit 1", "Never", "no verdict on ours.litmus"),
        ("echo Observation x Never 0 3", "perhaps", "ours.litmus has no line like"),
    ],
)
def test_no_verdict_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, result: str, said: str
) -> None:
    herd(monkeypatch, script)
    write(tmp_path, "ours", result)
    with pytest.raises(Failure, match=said):
        litmus.run(tmp_path, tmp_path)


def test_nothing_bad_happens_in_ours_and_all_of_them_can_fail() -> None:
    results = {path.stem: litmus.EXPECTED.findall(path.read_text()) for path in litmus.TESTS.glob("*.litmus")}
    ours = {name for name, found in results.items() if found == ["Never"]}
    assert ours == {name for name in results if "+" not in name} == {name.partition("+")[0] for name in results if "+" in name}
