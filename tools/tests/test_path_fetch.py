# SPDX-License-Identifier: GPL-2.0
"""Fetching: from a mirror of our own making, with everything that can be wrong with one."""

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.build import fetch, unpacked
from rust_writeback.errors import Failure

CONTENT = b"not really a kernel"
PINS = fetch.Pins("linux-source-0.1", "0.1.2-1", "stable", "usr/src/l.tar.xz", hashlib.sha256(CONTENT).hexdigest(), ["0.1"])


def make_mirror(folder: Path, *versions: str) -> str:
    """A Debian mirror with a kernel package in these versions."""
    mirror, package = folder / "mirror", folder / "package"
    release, index = mirror / "dists/stable/Release", mirror / "dists/stable/main/binary-amd64/Packages"
    for needed in (mirror / "pool", index.parent, package / "DEBIAN", package / "usr/src"):
        needed.mkdir(parents=True)
    (package / "usr/src/l.tar.xz").write_bytes(CONTENT)
    entries = ""
    for version in versions:
        control = f"Package: linux-source-0.1\nVersion: {version}\nArchitecture: all\nMaintainer: none <none>\nDescription: a\n"
        (package / "DEBIAN/control").write_text(control)
        deb = mirror / "pool" / f"l_{version}.deb"
        subprocess.run(["dpkg-deb", "-b", package, deb], check=True, capture_output=True)
        entries += f"{control}Filename: pool/{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {fetch.sha256_of(deb)}\n\n"
    index.write_text(entries)
    release.write_text(
        "Suite: stable\nCodename: stable\nComponents: main\nArchitectures: amd64\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n"
        f" {fetch.sha256_of(index)} {index.stat().st_size} main/binary-amd64/Packages\n"
    )
    return f"[trusted=yes] file://{mirror}"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def test_pinned_version_is_fetched_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBIAN_MIRROR", make_mirror(tmp_path, "0.1.2-1", "0.1.9-1"))
    with pytest.raises(Failure, match=f"checksum mismatch: .*{PINS.sha256}.*{'0' * 64}"):
        fetch.fetched(replace(PINS, sha256="0" * 64), cache)
    assert not list(cache.iterdir())
    tarball = fetch.fetched(PINS, cache)
    assert tarball.read_bytes() == CONTENT
    assert [path.name for path in cache.iterdir()] == ["linux-source-0.1_0.1.2-1.tar.xz"]
    monkeypatch.setenv("DEBIAN_MIRROR", "http://127.0.0.1:9/debian")
    assert fetch.fetched(PINS, cache) == tarball
    tarball.unlink()
    with pytest.raises(Failure, match="^the kernel's source could not be fetched: .*; check the network, or set DEBIAN_MIRROR$"):
        fetch.fetched(PINS, cache)


def test_newest_is_taken_loudly_when_the_pinned_one_has_gone(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEBIAN_MIRROR", make_mirror(tmp_path, "0.1.3-1", "0.1.10-1"))
    tarball = fetch.fetched(PINS, cache)
    assert tarball.name == "linux-source-0.1_0.1.10-1.tar.xz"
    told = capsys.readouterr().err
    assert "WARNING: linux-source-0.1 0.1.2-1 has gone from the mirror" in told
    assert PINS.sha256 in told, "the digest of what is used must be told"


def test_packages_are_unpacked_whole_and_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "CACHE", cache)
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setenv("DEBIAN_MIRROR", make_mirror(tmp_path, "0.1.2-1").replace("file://", "copy:"))
    wanted = unpacked.Packages("things", "the things", ("linux-source-0.1",), 0, suite="stable")
    with pytest.raises(Failure, match="^the things could not be fetched: E: .*no-such; check the network"):
        replace(wanted, names=(*wanted.names, "no-such")).folder()

    def half(packages: Iterable[Path], folder: Path) -> None:
        extract(packages, folder)
        raise Failure("no space left")

    extract = unpacked.extract
    with monkeypatch.context() as full_disk, pytest.raises(Failure, match="no space left"):
        full_disk.setattr(unpacked, "extract", half)
        wanted.folder()
    assert not list(cache.glob("[!.]*"))
    top = wanted.folder()
    assert (top / PINS.tarball).read_bytes() == CONTENT and list(cache.iterdir()) == [top]
    monkeypatch.setenv("DEBIAN_MIRROR", "http://127.0.0.1:9/debian")
    assert wanted.folder() == top


def make_tree(folder: Path, patchlevel: int = 3) -> Path:
    """The least that passes for a kernel."""
    for mark in fetch.KERNEL_MARKS:
        (folder / mark).parent.mkdir(parents=True, exist_ok=True)
        (folder / mark).touch()
    (folder / "Makefile").write_text(f"VERSION = 7\nPATCHLEVEL = {patchlevel}\nSUBLEVEL = 4\nEXTRAVERSION = -rc1\n")
    return folder


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, place in {"BUILD": "", "LINUX": "linux"}.items():
        monkeypatch.setattr(paths, name, tmp_path / "build" / place)
    return tmp_path / "build"


def unpack(source: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KERNEL_SRC", str(source))
    found, key = fetch.source()
    fetch.unpack(found)
    return key


def test_tree_and_tarball_are_taken(tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = make_tree(tmp_path / "tree")
    (tree / ".git").mkdir()
    (tree / ".git/config").touch()
    os.utime(tree / "Kbuild", (1, 1))
    first = unpack(tree, monkeypatch)
    assert fetch.kernel_version(build / "linux") == ("7.3", "7.3.4-rc1")
    assert not (build / "linux/.git/config").exists()
    (tree / "mm/filemap.c").write_text("edited")
    assert unpack(tree, monkeypatch) != first
    assert (build / "linux/Kbuild").stat().st_mtime > 1, "objects of another kernel would be kept"
    with tarfile.open(tmp_path / "linux.tar.gz", "w:gz") as tarball:
        tarball.add(tree, "linux-7.3.4")
    unpack(tmp_path / "linux.tar.gz", monkeypatch)
    assert (build / "linux/Kbuild").stat().st_mtime > 1
    assert fetch.kernel_version(build / "linux") == ("7.3", "7.3.4-rc1")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda source: make_tree(source, 2), r"^KERNEL_SRC is Linux 7.2.4-rc1; there are wiring patches for 7.3 only$"),
        (lambda source: source.mkdir(), "KERNEL_SRC is not a Linux tree with Rust: it has no Makefile"),
        (lambda source: source.write_bytes(b"\xfd7zXZ\0 and then nothing"), "unpacking .*/source failed with status 2"),
    ],
)
def test_a_source_that_is_no_kernel_of_the_series_is_refused(
    tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object], words: str
) -> None:
    make(tmp_path / "source")
    with pytest.raises(Failure, match=words):
        unpack(tmp_path / "source", monkeypatch)
    assert not list(build.glob("*"))
