# SPDX-License-Identifier: GPL-2.0
"""Fetches the kernel's source once, verifies it, and unpacks it into the build folder."""

import hashlib
import os
import re
import shutil
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from .. import paths, steps
from ..errors import Failure
from ..progress import Bar
from ..run import must
from . import unpacked

PINS = paths.TOOLS / "kernel.toml"

KERNEL_MARKS = ("Makefile", "Kbuild", "Kconfig", "rust/Makefile", "mm/filemap.c")
"""Files by which a Linux tree is known."""


@dataclass(frozen=True)
class Pins:
    """What tools/kernel.toml says."""

    package: str
    version: str
    suite: str
    tarball: str
    sha256: str
    series: list[str]


def read_pins() -> Pins:
    """The pinned kernel."""
    return Pins(**tomllib.loads(PINS.read_text()))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def source() -> tuple[Path, str]:
    """The kernel that KERNEL_SRC names, or else the pinned one, and a key that changes when anything in it has changed."""
    chosen = os.environ.get("KERNEL_SRC")
    if chosen is None:
        tarball = fetched(read_pins())
        return tarball, steps.digest(tarball.name)
    path = Path(chosen)
    return path, _fingerprint(path) if path.is_dir() else sha256_of(path)


def _fingerprint(tree: Path) -> str:
    """A digest over the names, sizes and times of a tree, far quicker than over its content."""
    total = hashlib.sha256()
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(files):
            status = os.lstat(os.path.join(folder, name))
            total.update(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return total.hexdigest()


def kernel_version(tree: Path) -> tuple[str, str]:
    """The series and the whole version of a tree, as in ("7.3", "7.3.4")."""
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)", (tree / "Makefile").read_text(), re.M))
    series = f"{found['VERSION']}.{found['PATCHLEVEL']}"
    return series, f"{series}.{found['SUBLEVEL']}{found.get('EXTRAVERSION', '')}"


def check(tree: Path, pins: Pins) -> None:
    """Refuse what is no kernel, or one that the wiring patches were not made for."""
    lacking = [mark for mark in KERNEL_MARKS if not (tree / mark).is_file()]
    if lacking:
        raise Failure(f"KERNEL_SRC is not a Linux tree with Rust: it has no {lacking[0]}; name one of a 7.3 kernel")
    series, version = kernel_version(tree)
    if series not in pins.series:
        raise Failure(f"KERNEL_SRC is Linux {version}; there are wiring patches for {', '.join(pins.series)} only")


def fetched(pins: Pins, cache: Path = paths.CACHE) -> Path:
    """The pinned tarball below the cache folder, fetched if it is not there.

    If the mirror no longer has that version, the newest of the same series.
    """
    tarball = cache / f"{pins.package}_{pins.version}.tar.xz"
    if tarball.exists():
        return tarball
    steps.need_room(cache, 1, "the kernel's source")
    with tempfile.TemporaryDirectory(prefix="fetch.", dir=cache) as name:
        apt = unpacked.Apt(Path(name), "the kernel's source", suite=pins.suite)
        table = apt.run("apt-cache", "madison", pins.package)
        offered = [line.split("|")[1].strip() for line in table.splitlines() if line.count("|") == 2]
        if not offered:
            raise Failure(f"the Debian mirror has no {pins.package} in {pins.suite}; set DEBIAN_MIRROR or KERNEL_SRC")
        version = pins.version if pins.version in offered else offered[0]
        if version != pins.version:
            gone = f"WARNING: {pins.package} {pins.version} has gone from the mirror."
            print(f"{gone} Building {version} instead; its SHA-256 is not pinned.", file=sys.stderr, flush=True)
            tarball = cache / f"{pins.package}_{version}.tar.xz"
            if tarball.exists():
                return tarball
        with Bar(f"fetching {pins.package}={version}"):
            apt.run("apt-get", "download", f"{pins.package}={version}")
        content = Path(name) / "content"
        unpacked.extract(apt.folder.glob("*.deb"), content)
        digest = sha256_of(content / pins.tarball)
        if version != pins.version:
            print(f"WARNING: SHA-256 of the kernel that is used: {digest}", file=sys.stderr, flush=True)
        elif digest != pins.sha256:
            raise Failure(
                f"checksum mismatch: {pins.package} has SHA-256 {digest}, {PINS.name} pins {pins.sha256}; "
                "it was not kept; try another mirror with DEBIAN_MIRROR"
            )
        (content / pins.tarball).rename(tarball)
    return tarball


BUILT = (".git", "/.config*", "/include/config", "/include/generated", "/arch/*/include/generated", "*.o", "*.cmd", "*.a")
"""What is not copied of a tree: its history, and what was built inside it."""


def unpack(origin: Path) -> None:
    """Make build/linux from the source, whole or not at all.

    Its files are new: they would be older than the objects of another kernel, which make would then keep.
    """
    steps.need_room(paths.BUILD, 2.5, "the kernel's source tree")
    part = paths.LINUX.with_name("linux.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    command = ["tar", "-x", "--touch", "--strip-components=1", "--no-same-owner", "-C", str(part), "-f", str(origin)]
    try:
        if origin.is_dir():
            check(origin, read_pins())
            command = ["rsync", "-rlp", *(f"--exclude={pattern}" for pattern in BUILT), f"{origin}/", f"{part}/"]
        with Bar("unpacking the kernel"):
            must(command, paths.LOG / "unpack.log", f"unpacking {origin}")
        check(part, read_pins())
    except Failure:
        shutil.rmtree(part)
        raise
    # What was remembered of the tree before goes first: it must not be taken
    # for knowledge of this one.
    for old in (paths.LINUX.with_name("linux.orig"), paths.LINUX):
        shutil.rmtree(old, ignore_errors=True)
    paths.LINUX.with_name("linux.overlay").unlink(missing_ok=True)
    part.rename(paths.LINUX)
