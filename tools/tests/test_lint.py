# SPDX-License-Identifier: GPL-2.0
"""How often a file uses unsafe is what tools/unsafe.toml says, and no more."""

from pathlib import Path

import pytest
from rust_writeback.check import lint

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
    [
        ({"a.rs": 2}, []),
        ({"a.rs": 1}, ["a.rs uses unsafe 2 times, and tools/unsafe.toml has 1; make them equal"]),
        ({"a.rs": 3}, ["a.rs uses unsafe 2 times, and tools/unsafe.toml has 3; make them equal"]),
        ({}, ["a.rs uses unsafe 2 times, and tools/unsafe.toml has 0; make them equal"]),
        ({"a.rs": 2, "gone.rs": 1}, ["gone.rs uses unsafe 0 times, and tools/unsafe.toml has 1; make them equal"]),
    ],
)
def test_more_and_less_than_is_allowed_is_told(tmp_path: Path, allowed: dict[str, int], told: list[str]) -> None:
    (tmp_path / "a.rs").write_text(TEXT)
    (tmp_path / "pure.rs").write_text("fn c() {}\n")
    assert lint.uses_of_unsafe([tmp_path / "a.rs", tmp_path / "pure.rs"], tmp_path, allowed) == told
