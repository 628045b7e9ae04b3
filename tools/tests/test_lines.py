# SPDX-License-Identifier: GPL-2.0
"""What counts as a line, and that each file of the kernel's belongs somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from rust_writeback.check import lines

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
