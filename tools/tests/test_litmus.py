# SPDX-License-Identifier: GPL-2.0
"""Litmus tests: what herd7 says is compared with what a test says, and no verdict is no success."""

from pathlib import Path

import pytest
from rust_writeback.check import litmus
from rust_writeback.check.guest_tests import Counts
from rust_writeback.errors import Failure


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
