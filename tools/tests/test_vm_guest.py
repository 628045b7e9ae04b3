# SPDX-License-Identifier: GPL-2.0
"""What goes into the guest, and that the same content gives the same bytes."""

import subprocess
from pathlib import Path

import pytest
from rust_writeback.build import archive
from rust_writeback.vm import images
from rust_writeback.errors import Failure


def test_image_holds_the_tree_and_repeats(tmp_path: Path) -> None:
    source, one, two = tmp_path / "source", tmp_path / "one", tmp_path / "two"
    source.write_bytes(bytes(range(256)) * 40)
    source.chmod(0o755)
    entries = [archive.folder("d", 0o1777), archive.from_disk("d/f", source), archive.file("e", b"hello\n")]
    images.make_image(entries, one)
    images.make_image(entries, two)
    assert one.read_bytes() == two.read_bytes()
    told = subprocess.run(["debugfs", "-R", "stat d/f", str(one)], capture_output=True, text=True, check=True).stdout
    assert "Mode:  0755" in told and "User:     0" in told


def test_a_failed_image_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="mke2fs"):
        images.make_image([archive.file("f", b""), archive.file("f/g", b"")], tmp_path / "image")
    assert list(tmp_path.iterdir()) == []
