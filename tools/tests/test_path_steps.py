# SPDX-License-Identifier: GPL-2.0
"""Steps: skipped for the same content only, and whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rust_writeback import errors, paths, steps
from rust_writeback.build import archive
from rust_writeback.errors import Failure
from rust_writeback.vm import images


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(paths, "STAMPS", tmp_path / "build" / "stamps")
    return tmp_path


def test_a_step_is_skipped_only_if_it_was_done_for_the_same_content(build: Path) -> None:
    product = build / "product"
    assert steps.step("a", "key", [product], product.touch)
    assert not steps.step("a", "key", [product], lambda: pytest.fail("done twice"))
    assert steps.step("a", "other key", [product], product.touch)
    product.unlink()
    assert steps.step("a", "other key", [product], product.touch), "its product was missing"

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        steps.step("a", "new key", [product], interrupted)
    assert steps.step("a", "other key", [product], product.touch), "the old stamp outlived a step cut short"


def test_digest_tells_content_names_and_kinds_apart(build: Path) -> None:
    folder = build / "folder"
    folder.mkdir()
    (folder / "a").write_text("x")
    first = steps.digest(folder)
    (folder / "a").rename(folder / "b")
    assert steps.digest(folder) != first
    assert steps.digest("ab", "c") != steps.digest("a", "bc")


def test_failed_write_leaves_the_old_file(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build / "file"
    steps.write_whole(path, "old")

    def full(_: object, __: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError):
        steps.write_whole(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in build.iterdir()] == ["file"], "a half-made file was left"


def test_a_failed_image_leaves_nothing(build: Path) -> None:
    with pytest.raises(Failure, match="mke2fs"):
        images.make_image([archive.file("f", b""), archive.file("f/g", b"")], build / "image")
    assert list(build.iterdir()) == []


def test_lock_dies_with_its_process() -> None:
    program = (
        "from rust_writeback import paths, steps; from pathlib import Path; import os\n"
        f"paths.BUILD = Path({str(paths.BUILD)!r})\n"
        "with steps.only_one('x'): os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=False)
    with steps.only_one("x"):
        pass


@pytest.mark.parametrize(
    ("raised", "status", "text"),
    [
        (Failure("it broke; fix it", 3), 3, "error: it broke; fix it\n"),
        (KeyboardInterrupt(), 130, "error: interrupted; run the same command again to go on\n"),
        (OSError(28, "", "/x"), 1, "error: no room left on the disk of /x; free some space and run the same command again\n"),
        (OSError(13, "Permission denied"), None, ""),
    ],
)
def test_every_end_is_one_line_but_a_bug(
    raised: BaseException, status: int | None, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def main() -> int:
        raise raised

    if status is None:
        with pytest.raises(OSError):
            errors.run_main(main)
    else:
        assert errors.run_main(main) == status
    assert capsys.readouterr().err == text
