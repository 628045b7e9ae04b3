# SPDX-License-Identifier: GPL-2.0
"""Our files and hooks in the kernel tree: what is listed, all hunks or nothing, and without touching what stays the same."""

import os
from pathlib import Path

import pytest
from rust_writeback.build import overlay, wiring
from rust_writeback.errors import Failure

ORIGINAL = "".join(f"line {number}\n" for number in range(1, 21))


def hunk(number: int, text: str = "hook") -> str:
    """A hunk that adds a line after line NUMBER."""
    return f"@@ -{number},2 +{number},3 @@\n line {number}\n+{text}\n line {number + 1}\n"


def patch_of(name: str, *hunks: str) -> str:
    return f"--- a/{name}\n+++ b/{name}\n" + "".join(hunks)


class House:
    """A kernel tree with mm/x.c and mm/y.c, and a project with files and patches for it."""

    def __init__(self, folder: Path) -> None:
        self.project, self.tree = folder / "project", folder / "linux"
        for path in (self.tree / "mm/x.c", self.tree / "mm/y.c", self.project / "mm/a.rs", self.project / "mm/b.c"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(ORIGINAL)

    def overlay(self, text: str) -> set[str]:
        """Put these files into the tree; what is there now."""
        allowlist = self.project / "overlay.toml"
        allowlist.write_text(text)
        overlay.apply(self.tree, self.project, allowlist)
        return {str(path.relative_to(self.tree)) for path in self.tree.rglob("*") if path.is_file()}

    def wire(self, **patches: str) -> None:
        for folder, text in patches.items():
            (self.project / folder).mkdir(parents=True, exist_ok=True)
            (self.project / folder / "wiring.patch").write_text(text)
        wiring.apply("7.3.4", self.tree, self.project)

    def read(self, name: str) -> str:
        return (self.tree / name).read_text()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_the_listed_files_and_nothing_else(house: House) -> None:
    kernel = {"mm/x.c", "mm/y.c"}
    assert house.overlay('"mm/a.rs" = "include/new/a.rs"\n"mm/b.c" = "mm/b.c"') == kernel | {"include/new/a.rs", "mm/b.c"}
    os.utime(house.tree / "mm/b.c", (1, 1))
    assert house.overlay('"mm/b.c" = "mm/b.c"') == kernel | {"mm/b.c"}
    assert (house.tree / "mm/b.c").stat().st_mtime == 1, "an unchanged file was rebuilt"
    (house.project / "mm/b.c").write_text("new")
    house.overlay('"mm/b.c" = "mm/b.c"')
    assert house.read("mm/b.c") == "new"
    with pytest.raises(Failure, match="mm/b.c would overwrite mm/x.c of the kernel"):
        house.overlay('"mm/b.c" = "mm/x.c"')
    assert house.read("mm/x.c") == ORIGINAL


def test_a_file_is_made_from_its_original_and_all_patches(house: House) -> None:
    house.wire(rust=patch_of("mm/x.c", hunk(3, "one")), mm=patch_of("mm/x.c", hunk(9, "two")) + patch_of("mm/y.c", hunk(5)))
    assert [line for line in house.read("mm/x.c").splitlines() if "line" not in line] == ["one", "two"]
    os.utime(house.tree / "mm/x.c", (1, 1))
    house.wire()
    assert (house.tree / "mm/x.c").stat().st_mtime == 1, "an unchanged file was rebuilt"
    house.wire(mm=patch_of("mm/x.c", hunk(9, "second")))
    assert [line for line in house.read("mm/x.c").splitlines() if "line" not in line] == ["one", "second"]
    assert house.read("mm/y.c") == ORIGINAL, "no patch touches it any more"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (patch_of("mm/y.c", hunk(3), hunk(11).replace("line 12", "else")), "mm/wiring.patch does not apply .* Hunk #2 FAILED"),
        # Nearly is not enough.
        (patch_of("mm/y.c", "@@ -5,4 +5,5 @@\n line 5\n line 6\n+hook\n line 7\n line 9\n"), "does not apply"),
        (patch_of("mm/z.c", hunk(5)), "Linux 7.3.4 has no mm/z.c"),
        # New files belong into the overlay.
        ("--- /dev/null\n+++ b/mm/z.c\n@@ -0,0 +1 @@\n+x\n", "makes a new file"),
    ],
)
def test_a_hunk_that_does_not_apply_is_named_and_nothing_is_changed(house: House, patch: str, words: str) -> None:
    with pytest.raises(Failure, match=words):
        house.wire(rust=patch_of("mm/x.c", hunk(5)), mm=patch)
    assert house.read("mm/x.c") == house.read("mm/y.c") == ORIGINAL
