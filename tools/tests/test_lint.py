# SPDX-License-Identifier: GPL-2.0
"""How often a file uses unsafe is what tools/unsafe.toml says, and no more."""

from pathlib import Path

from rust_writeback.check import lint

TEXT = """\
// The word unsafe in a comment is none.
unsafe fn a() {}
fn b() {
    // SAFETY: Nothing is asked.
    unsafe { a() }
}
"""


def wrong(project: Path, **allowed: int) -> list[str]:
    """What is wrong if a.rs, which uses it twice, and others may use it so often."""
    (project / "a.rs").write_text(TEXT)
    (project / "pure.rs").write_text("fn c() {}\n")
    return lint.uses_of_unsafe([project / "a.rs", project / "pure.rs"], project, {f"{name}.rs": n for name, n in allowed.items()})


def test_number_that_is_allowed(tmp_path: Path) -> None:
    assert wrong(tmp_path, a=2) == []


def test_more_than_is_allowed(tmp_path: Path) -> None:
    assert wrong(tmp_path, a=1) == ["a.rs uses unsafe 2 times, and tools/unsafe.toml has 1; make them equal"]
    assert wrong(tmp_path) == ["a.rs uses unsafe 2 times, and tools/unsafe.toml has 0; make them equal"]


def test_less_than_is_allowed(tmp_path: Path) -> None:
    (problem,) = wrong(tmp_path, a=2, gone=1)
    assert problem.startswith("gone.rs uses unsafe 0 times")
    (problem,) = wrong(tmp_path, a=3)
    assert problem.startswith("a.rs uses unsafe 2 times")
