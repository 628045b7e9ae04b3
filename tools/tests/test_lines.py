# SPDX-License-Identifier: GPL-2.0
"""What counts as a line, and that each file of the kernel's belongs somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from rust_writeback.check import lines
from rust_writeback.errors import Failure

RUST = """// SPDX-License-Identifier: GPL-2.0

//! What it is.

/// One.
fn one() -> u32 {
    1 // as it says
}

#[cfg(all(test, not(loom)))]
mod tests {
    fn many() {}
}
"""
C = """/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Several
 *
 * lines.
 */
int one(void)
{
\treturn 1;	/* as it says */
}
"""


@pytest.mark.parametrize(("name", "text", "expected"), [("one.rs", RUST, 3), ("one.c", C, 4)])
def test_comments_and_tests_do_not_count(tmp_path: Path, name: str, text: str, expected: int) -> None:
    (tmp_path / name).write_text(text)
    assert len(lines.code(tmp_path / name).splitlines()) == expected


def test_all_files_belong_to_a_mechanism() -> None:
    table = lines.counted()
    assert all(sum(row.values()) for row in table.values())
    assert table["kick and round"]["core"] > 0


PLAN = '''
[[patch]]
subject = "mm: count"
files = ["mm/dontcache_counter.rs"]

[[patch]]
subject = "{subject}"
files = ["mm/*_glue.c", "mm/dontcache_switch.c"]
'''


def project(folder: Path, subject: str) -> Path:
    """One with a series of two patches."""
    names = ("mm/dontcache_counter.rs", "mm/dontcache_glue.c", "mm/dontcache_switch.c", "mm/account.c")
    for directory in ("mm", "tools"):
        (folder / directory).mkdir()
    for name in names:
        (folder / name).write_text("one\n")
    (folder / "tools" / "overlay.toml").write_text("".join(f'"{name}" = "{name}"\n' for name in names))
    (folder / "tools" / "series.toml").write_text(PLAN.format(subject=subject))
    return folder


def test_what_is_not_for_merging_does_not_count(tmp_path: Path) -> None:
    table = lines.counted(project(tmp_path, "not for merging: both cores"))
    assert table["counter"] == {"C": 1, "core": 0, "abstractions and edges": 1}
    assert sum(number for row in table.values() for number in row.values()) == 2


def test_a_series_that_ends_otherwise_is_told(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="the last patch of series.toml is 'mm: switch'; put the one that is not for"):
        lines.counted(project(tmp_path, "mm: switch"))


def test_a_file_without_a_mechanism_is_told() -> None:
    with pytest.raises(Failure, match="belongs to no mechanism"):
        lines.mechanism("mm/something.c")
