# SPDX-License-Identifier: GPL-2.0
"""The page of promises says what the rows say."""

from rust_writeback.check import promises


def test_the_page_is_not_older_than_the_rows() -> None:
    assert promises.PAGE.read_text() == promises.current(), "make it anew: tools/enter python3 -m rust_writeback.check.promises"
