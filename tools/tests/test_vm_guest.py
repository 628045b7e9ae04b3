# SPDX-License-Identifier: GPL-2.0
"""What goes into the guest, and that the same content gives the same bytes."""

import subprocess
from pathlib import Path

import pytest
from rust_writeback.build import archive
from rust_writeback.vm import images
from rust_writeback.errors import Failure


@pytest.fixture
def entries(tmp_path: Path) -> list[archive.Entry]:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 40)
    source.chmod(0o755)
    (tmp_path / "link").symlink_to("source")
    return [
        archive.folder("d", 0o1777),
        archive.from_disk("d/f", source),
        archive.from_disk("d/l", tmp_path / "link"),
        archive.file("e", b"hello\n"),
    ]


def test_image_holds_the_tree_and_repeats(tmp_path: Path, entries: list[archive.Entry]) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    images.make_image(entries, one)
    images.make_image(entries, two)
    assert one.read_bytes() == two.read_bytes()
    told = subprocess.run(["debugfs", "-R", "stat d/f", str(one)], capture_output=True, text=True, check=True).stdout
    assert "Mode:  0755" in told and "User:     0" in told
    assert subprocess.run(["e2fsck", "-fn", str(one)], capture_output=True).returncode == 0


def test_a_failed_image_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="mke2fs"):
        images.make_image([archive.file("f", b""), archive.file("f/g", b"")], tmp_path / "image")
    assert list(tmp_path.iterdir()) == []


def test_cpio_is_what_cpio_reads(tmp_path: Path, entries: list[archive.Entry]) -> None:
    packed = archive.cpio(entries)
    assert len(packed) % 4 == 0
    subprocess.run(["cpio", "-id", "--quiet"], input=packed, cwd=tmp_path, check=True)
    assert (tmp_path / "d/f").read_bytes() == (tmp_path / "source").read_bytes()
    assert (tmp_path / "d/l").readlink() == Path("source")
    assert (tmp_path / "d").stat().st_mode & 0o7777 == 0o1777
