# SPDX-License-Identifier: GPL-2.0
"""What goes into the guest."""

from pathlib import Path

import pytest
from rust_writeback.build import archive
from rust_writeback.vm import images
from rust_writeback.errors import Failure


def test_a_failed_image_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="mke2fs"):
        images.make_image([archive.file("f", b""), archive.file("f/g", b"")], tmp_path / "image")
    assert list(tmp_path.iterdir()) == []
