# SPDX-License-Identifier: GPL-2.0
"""Packages of another architecture: whole or not there, and asked of apt with no package installed."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from rust_writeback import paths, steps
from rust_writeback.arch import ARM64
from rust_writeback.errors import Failure
from rust_writeback.vm import images


@pytest.fixture(autouse=True)
def _folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(steps, "need_room", lambda *_: None)


def fake(monkeypatch: pytest.MonkeyPatch, unpacks: bool = True, fetches: bool = True) -> list[list[str]]:
    """An apt-get that fetches one package, and a dpkg-deb that unpacks it, or not."""
    asked: list[list[str]] = []

    def run(command: list[Any], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append([str(word) for word in command])
        if command[0] == "apt-get":
            cache = next(word for word in asked[-1] if word.startswith("-oDir::Cache=")).partition("=")[2]
            if "install" in command:
                Path(cache, "archives").mkdir()
                Path(cache, "archives", "fio_1_arm64.deb").touch()
            return subprocess.CompletedProcess(command, 0 if fetches else 100, "", "W: odd\nE: no such host\n")
        Path(command[-1], "usr").mkdir()
        return subprocess.CompletedProcess(command, 0 if unpacks else 2, "", "no space left")

    monkeypatch.setattr(subprocess, "run", run)
    return asked


def test_it_is_whole_or_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for ways, said in ({"fetches": False}, "E: no such host; check the network"), ({"unpacks": False}, "no space left"):
        fake(monkeypatch, **ways)
        with pytest.raises(Failure, match=said) as caught:
            images.tree(ARM64)
        assert "\n" not in str(caught.value)
        assert not list(paths.CACHE.glob("[!.]*"))
    asked = fake(monkeypatch)
    top = images.tree(ARM64)
    assert (top / "usr").is_dir() and top.name.startswith("guest-arm64-")
    assert images.tree(ARM64) == top and len(asked) == 3
    assert "-oAPT::Architecture=arm64" in asked[0] and {"fio", "base-files", "libc6-dev"} <= set(asked[1])
    monkeypatch.setattr(images, "FOREIGN", (*images.FOREIGN, "jq"))
    assert images.tree(ARM64) != top
