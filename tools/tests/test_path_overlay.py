# SPDX-License-Identifier: GPL-2.0
"""The overlay: what is listed and nothing else, without touching what stays the same."""

import os
from pathlib import Path

import pytest
from rust_writeback.build import overlay
from rust_writeback.errors import Failure


class House:
    """A project and a kernel tree of a few files."""

    def __init__(self, folder: Path) -> None:
        self.project, self.tree, self.list = folder / "project", folder / "linux", folder / "overlay.toml"
        for name in ("mm/a.rs", "mm/b.c"):
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(name)
        (self.tree / "mm").mkdir(parents=True)
        (self.tree / "mm/filemap.c").write_text("kernel")

    def apply(self, text: str) -> None:
        self.list.write_text(text)
        overlay.apply(self.tree, self.project, self.list)

    def files(self) -> set[str]:
        return {str(path.relative_to(self.tree)) for path in self.tree.rglob("*") if path.is_file()}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_the_listed_files_and_nothing_else(house: House) -> None:
    house.apply('"mm/a.rs" = "include/new/a.rs"\n"mm/b.c" = "mm/b.c"')
    assert house.files() == {"mm/filemap.c", "include/new/a.rs", "mm/b.c"}
    os.utime(house.tree / "mm/b.c", (1, 1))
    house.apply('"mm/b.c" = "mm/b.c"')
    assert house.files() == {"mm/filemap.c", "mm/b.c"}
    assert (house.tree / "mm/b.c").stat().st_mtime == 1, "an unchanged file was rebuilt"
    (house.project / "mm/b.c").write_text("new")
    house.apply('"mm/b.c" = "mm/b.c"')
    assert (house.tree / "mm/b.c").read_text() == "new"


def test_kernel_file_is_never_overwritten(house: House) -> None:
    with pytest.raises(Failure, match="mm/a.rs would overwrite mm/filemap.c of the kernel"):
        house.apply('"mm/a.rs" = "mm/filemap.c"')
    assert (house.tree / "mm/filemap.c").read_text() == "kernel"
