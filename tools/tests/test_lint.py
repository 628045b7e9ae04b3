# SPDX-License-Identifier: GPL-2.0
"""A linter that finds no file or cannot run is no success; unsafe and files are counted as they are listed."""

from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.check import lines, lint
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
def test_more_and_less_unsafe_than_is_allowed_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, allowed: str, told: int
) -> None:
    (tmp_path / "a.rs").write_text(TEXT)
    (tmp_path / "pure.rs").write_text("fn c() {}\n")
    (tmp_path / "unsafe.toml").write_text(allowed)
    monkeypatch.setattr(paths, "PROJECT", tmp_path)
    monkeypatch.setattr(lint, "UNSAFE", tmp_path / "unsafe.toml")
    assert len(lint.unsafe([tmp_path / "a.rs", tmp_path / "pure.rs"]).splitlines()) == told


def test_what_looks_at_nothing_or_does_not_run_has_failed() -> None:
    def breaks(_: list[Path]) -> str:
        raise Failure("the kernel does not build")

    assert lint.judge(lint.Linter("nothing", [], lambda _: "")) == "it found no file"
    assert lint.judge(lint.Linter("breaks", [Path("a")], breaks)) == "the kernel does not build"
    assert lint.judge(lint.Linter("silent", [Path("a")], lambda _: lint._said(["false"]))) == "not clean"
    assert lint.judge(lint.Linter("clean", [Path("a")], lambda _: lint._said(["true"]))) is None


def test_all_files_belong_to_a_mechanism() -> None:
    table, hooks = lines.counted()
    assert all(sum(row.values()) for row in table.values()) and hooks > 0
