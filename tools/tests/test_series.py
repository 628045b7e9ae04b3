# SPDX-License-Identifier: GPL-2.0
"""The series of patches: it is what is built, it applies, and nothing of it is in two patches or in none."""

import re
import subprocess
from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.build import overlay, series, series_check
from rust_writeback.errors import Failure
from rust_writeback.build.series import Grown, Patch, Unit, assign, held_back, in_hunks, taken_apart

HOOKS = """--- a/fs/a.c
+++ b/fs/a.c
@@ -1,2 +1,4 @@
 one
+#include <linux/rust_kick.h>
+#include <linux/rust_tail.h>
 two
@@ -4,3 +6,4 @@
 four
-five
+if (!mine)
+	five
 six
"""
ORIGINAL = ["one\n", "two\n", "three\n", "four\n", "five\n", "six\n"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return series.write(tmp_path_factory.mktemp("series") / "out")


def touched() -> set[str]:
    return {*overlay.read_allowlist().values()} | {name for patch in overlay.patches() for name in overlay.touched(patch)}


def test_the_series_applies_and_makes_the_tree_that_is_built(made: list[Path], tmp_path: Path) -> None:
    for patch in overlay.patches():
        for name in overlay.touched(patch):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes((series.ORIGINALS / name).read_bytes())

    def git(*arguments: str | Path) -> None:
        who = ["-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
        subprocess.run(["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message=pristine")
    git("am", "--3way", "--empty=drop", *made)
    for name in touched():
        assert (tmp_path / name).read_bytes() == (paths.LINUX / name).read_bytes(), name


def test_the_mails(made: list[Path]) -> None:
    """One core until the last patch, figures in the letter, and no name of a person."""
    letter, *patches, last = [path.read_text() for path in made]
    assert not [text for text in patches if series.BOTH_CORES in text]
    assert series.BOTH_CORES in last and "not for merging" in last
    assert not [text for text in (letter, *patches, last) if "Signed-off-by" in text]
    assert "***" not in letter and "{figures}" not in letter
    assert re.search(r"^4 KiB in a row\n  C +bandwidth \d.*\n  Rust +bandwidth \d.*p99.9 ", letter, re.MULTILINE)


def units() -> list[Unit]:
    return [part for units in in_hunks(HOOKS).values() for unit in units for part in taken_apart(unit)]


@pytest.mark.parametrize(
    "plan, said",
    [
        ([{"fs/a.c": ["rust_kick.h"]}], "belongs to no patch"),
        ([{"fs/a.c": ["*"]}, {"fs/a.c": ["*"]}], "belongs to '0' and '1'"),
        ([{"fs/a.c": ["*"]}, {"fs/a.c": ["rust_kick.h"]}, {"fs/a.c": ["kick"]}], "belongs to '1' and '2'"),
    ],
)
def test_a_line_belongs_to_one_patch(plan: list[dict[str, list[str]]], said: str) -> None:
    patches = [Patch(str(number), "", [], lines) for number, lines in enumerate(plan)]
    with pytest.raises(Failure, match=said):
        assign(Grown("fs/a.c", ORIGINAL, units()), patches, None)


def test_a_file_belongs_to_one_patch_and_a_word_names_one_line() -> None:
    with pytest.raises(Failure, match="mm/new.rs is in 0 patches"):
        series.owners([Patch("a", "", ["mm/*.c"])], ["mm/new.rs"])
    with pytest.raises(Failure, match="mm/new.rs is in 2 patches"):
        series.owners([Patch("a", "", ["mm/*.rs"]), Patch("b", "", ["mm/new.rs"])], ["mm/new.rs"])
    with pytest.raises(Failure, match="a.rs has 2 lines with 'mod'"):
        held_back("mod a;\nmod b;\n", ["mod"], "a.rs")


def test_options_are_asked_for_once_they_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm" / "Kconfig.rust_writeback").write_text("config RUST_WRITEBACK\n\tbool\n")
    monkeypatch.setattr(series_check, "TREE", tmp_path)
    assert series_check.asked("with")["CONFIG_RUST_WRITEBACK"] == "y"
    assert series_check.asked("without")["CONFIG_RUST_WRITEBACK"] == "n"
