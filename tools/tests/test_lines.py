# SPDX-License-Identifier: GPL-2.0
"""Each file of the kernel's belongs to a mechanism."""

from rust_writeback.check import lines


def test_all_files_belong_to_a_mechanism() -> None:
    table, hooks = lines.counted()
    assert all(sum(row.values()) for row in table.values()) and hooks > 0
