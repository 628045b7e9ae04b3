# SPDX-License-Identifier: GPL-2.0
"""Each file of the kernel's belongs to a mechanism."""

from rust_writeback.check import lines


def test_all_files_belong_to_a_mechanism() -> None:
    table = lines.counted()
    assert all(sum(row.values()) for row in table.values())
    assert table["kick and round"]["core"] > 0
