# SPDX-License-Identifier: GPL-2.0
"""Our files and hooks: what is listed and nothing else, all hunks or nothing, and no change of what stays the same."""

import os
from pathlib import Path

import pytest
from rust_writeback.build import overlay
from rust_writeback.errors import Failure

ORIGINAL = "".join(f"line {number}\n" for number in range(1, 21))


def hunk(number: int, text: str = "hook") -> str:
    """A hunk that adds a line after line NUMBER."""
    return f"@@ -{number},2 +{number},3 @@\n line {number}\n+{text}\n line {number + 1}\n"


def patch_of(name: str, *hunks: str) -> str:
    return f"--- a/{name}\n+++ b/{name}\n" + "".join(hunks)


class House:
    """A kernel tree with mm/x.c and mm/y.c, and a project with two files and with patches for it."""

    def __init__(self, folder: Path) -> None:
        self.project, self.tree = folder / "project", folder / "linux"
        for path in (self.tree / "mm/x.c", self.tree / "mm/y.c", self.project / "mm/a.rs", self.project / "mm/b.c"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(ORIGINAL)

    def apply(self, listed: str = "", **patches: str) -> None:
        (self.project / "tools").mkdir(exist_ok=True)
        (self.project / "tools/overlay.toml").write_text(listed)
        for folder, text in patches.items():
            (self.project / folder).mkdir(exist_ok=True)
            (self.project / folder / "wiring.patch").write_text(text)
        overlay.apply("7.3.4", self.tree, self.project)

    def files(self) -> set[str]:
        return {str(path.relative_to(self.tree)) for path in self.tree.rglob("*") if path.is_file()}

    def read(self, name: str) -> str:
        return (self.tree / name).read_text()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_the_listed_files_and_nothing_else(house: House) -> None:
    house.apply('"mm/a.rs" = "include/new/a.rs"\n"mm/b.c" = "mm/b.c"')
    assert house.files() == {"mm/x.c", "mm/y.c", "include/new/a.rs", "mm/b.c"}
    os.utime(house.tree / "mm/b.c", (1, 1))
    house.apply('"mm/b.c" = "mm/b.c"')
    assert house.files() == {"mm/x.c", "mm/y.c", "mm/b.c"}
    assert (house.tree / "mm/b.c").stat().st_mtime == 1, "an unchanged file was rebuilt"
    (house.project / "mm/b.c").write_text("new")
    house.apply('"mm/b.c" = "mm/b.c"')
    assert house.read("mm/b.c") == "new"


def test_a_file_is_made_from_its_original_and_all_patches(house: House) -> None:
    house.apply(rust=patch_of("mm/x.c", hunk(3, "one")), mm=patch_of("mm/x.c", hunk(9, "two")) + patch_of("mm/y.c", hunk(5)))
    assert [line for line in house.read("mm/x.c").splitlines() if "line" not in line] == ["one", "two"]
    os.utime(house.tree / "mm/x.c", (1, 1))
    house.apply()
    assert (house.tree / "mm/x.c").stat().st_mtime == 1, "an unchanged file was rebuilt"
    house.apply(mm=patch_of("mm/x.c", hunk(9, "second")))
    assert [line for line in house.read("mm/x.c").splitlines() if "line" not in line] == ["one", "second"]
    assert house.read("mm/y.c") == ORIGINAL, "no patch touches it any more"


@pytest.mark.parametrize("hooked", [False, True])
def test_kernel_file_is_never_overwritten(house: House, hooked: bool) -> None:
    if hooked:
        house.apply(mm=patch_of("mm/x.c", hunk(3)))
    before = house.read("mm/x.c")
    with pytest.raises(Failure, match="mm/a.rs would overwrite mm/x.c of the kernel"):
        house.apply('"mm/a.rs" = "mm/x.c"')
    assert house.read("mm/x.c") == before


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (
            patch_of("mm/y.c", hunk(3), "@@ -11,2 +11,3 @@\n line 11\n+hook\n something else\n"),
            r"mm/wiring.patch does not apply to Linux 7.3.4: mm/y.c Hunk #2 FAILED at 12; rebase the patch",
        ),
        # Nearly is not enough.
        (patch_of("mm/y.c", "@@ -5,4 +5,5 @@\n line 5\n line 6\n+hook\n line 7\n line 9\n"), "does not apply"),
        (patch_of("mm/z.c", hunk(5)), "Linux 7.3.4 has no mm/z.c"),
    ],
)
def test_a_hunk_that_does_not_apply_is_named_and_nothing_is_changed(house: House, patch: str, words: str) -> None:
    with pytest.raises(Failure, match=words):
        house.apply(rust=patch_of("mm/x.c", hunk(5)), mm=patch)
    assert house.read("mm/x.c") == house.read("mm/y.c") == ORIGINAL
