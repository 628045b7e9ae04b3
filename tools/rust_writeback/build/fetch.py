# SPDX-License-Identifier: GPL-2.0
"""Fetches the kernel's source once, verifies it, and unpacks it into the build folder."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from .. import paths, steps
from ..errors import Failure
from ..progress import Bar
from .unpacked import mirror

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


@dataclass(frozen=True)
class Source:
    """Where a kernel comes from.

    The identity changes when it is another kernel altogether, the key when
    anything in it has changed.
    """

    path: Path
    identity: str
    key: str
    name: str


def read_pins(path: Path = PINS) -> Pins:
    """The pinned kernel."""
    return Pins(**tomllib.loads(path.read_text()))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def source() -> Source:
    """The kernel that KERNEL_SRC names, or else the pinned one."""
    chosen = os.environ.get("KERNEL_SRC")
    if chosen is None:
        tarball = fetched(read_pins())
        return Source(tarball, tarball.name, steps.digest(tarball.name), f"the kernel package's {tarball.name}")
    path = Path(chosen)
    if path.is_dir():
        _check_marks(path)
        status = path.stat()
        identity = f"folder {status.st_dev}:{status.st_ino}"
        return Source(path, identity, _fingerprint(path), "KERNEL_SRC")
    key = sha256_of(path)
    return Source(path, f"tarball {key}", key, "KERNEL_SRC")


def _fingerprint(tree: Path) -> str:
    """A digest over the names, sizes and times of a tree, far quicker than over its content."""
    total = hashlib.sha256()
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(files):
            status = os.lstat(os.path.join(folder, name))
            total.update(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return total.hexdigest()


def _check_marks(tree: Path) -> None:
    lacking = [mark for mark in KERNEL_MARKS if not (tree / mark).is_file()]
    if lacking:
        raise Failure(f"KERNEL_SRC is not a Linux tree with Rust: it has no {lacking[0]}; name one of a 7.3 kernel")


def kernel_version(tree: Path) -> tuple[str, str]:
    """The series and the whole version of a tree, as in ("7.3", "7.3.4")."""
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)", (tree / "Makefile").read_text(), re.M))
    series = f"{found['VERSION']}.{found['PATCHLEVEL']}"
    return series, f"{series}.{found['SUBLEVEL']}{found.get('EXTRAVERSION', '')}"


def check_series(tree: Path, pins: Pins) -> None:
    """Refuse a kernel that the wiring patches were not made for."""
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
    steps.need_room(cache, 0.5, "the kernel's source")
    with tempfile.TemporaryDirectory(prefix="fetch.", dir=cache) as folder:
        apt = Apt(Path(folder), pins)
        version = pins.version
        offered = apt.versions()
        if version not in offered:
            if not offered:
                raise Failure(f"the Debian mirror has no {pins.package} in {pins.suite}; set DEBIAN_MIRROR or KERNEL_SRC")
            version = offered[0]
            tarball = cache / f"{pins.package}_{version}.tar.xz"
            print(
                f"WARNING: {pins.package} {pins.version} has gone from the mirror.\n"
                f"WARNING: building {version} instead; its SHA-256 is not pinned.",
                file=sys.stderr,
                flush=True,
            )
            if tarball.exists():
                return tarball
        package = apt.download(version)
        part = Path(folder) / "tarball"
        _extract_member(package, pins.tarball, part)
        package.unlink()
        digest = sha256_of(part)
        if version == pins.version:
            verify(digest, pins.sha256, pins.package)
        else:
            print(f"WARNING: SHA-256 of the kernel that is used: {digest}", file=sys.stderr, flush=True)
        part.rename(tarball)
    return tarball


def verify(digest: str, pinned: str, what: str) -> None:
    """Refuse content that is not the pinned one."""
    if digest != pinned:
        raise Failure(
            f"checksum mismatch: {what} has SHA-256 {digest}, {PINS.name} pins {pinned}; "
            "it was not kept; try another mirror with DEBIAN_MIRROR"
        )


def _extract_member(package: Path, member: str, target: Path) -> None:
    """Take one file out of a Debian package."""
    with target.open("wb") as file, subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as unpack:
        tar = subprocess.run(["tar", "-xO", f"./{member}"], stdin=unpack.stdout, stdout=file, check=False)
    if tar.returncode or unpack.returncode:
        raise Failure(f"{package.name} cannot be unpacked or has no {member}; run the same command again")


class Apt:
    """apt with lists and sources of its own, which leaves the build root as it is."""

    def __init__(self, folder: Path, pins: Pins) -> None:
        self.folder = folder
        self.pins = pins
        self.mirror = mirror()
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        (folder / "sources.list").write_text(f"deb {self.mirror} {pins.suite} main\n")
        self.options = [
            "-qq",
            f"-oDir::Etc::SourceList={folder}/sources.list",
            "-oDir::Etc::SourceParts=/dev/null",
            f"-oDir::State::Lists={folder}/lists",
            f"-oDir::Cache={folder}/cache",
            "-oAPT::Sandbox::User=root",
            "-oAPT::Update::Error-Mode=any",
        ]
        update = self._run(["apt-get", *self.options, "update"])
        if update.returncode:
            raise Failure(f"the Debian mirror {self.mirror} does not answer ({_last(update)}); set DEBIAN_MIRROR")

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)

    def versions(self) -> list[str]:
        """The versions on offer, newest first."""
        table = self._run(["apt-cache", *self.options, "madison", self.pins.package]).stdout
        return [line.split("|")[1].strip() for line in table.splitlines() if line.count("|") == 2]

    def download(self, version: str) -> Path:
        """Fetch the package."""
        name = f"{self.pins.package}={version}"
        status_option = "-oAPT::Status-Fd=1"
        command = ["apt-get", *self.options, status_option, "download", name]
        with (
            Bar(f"fetching {name}", 100) as bar,
            subprocess.Popen(
                command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as process,
        ):
            assert process.stdout is not None and process.stderr is not None
            for line in process.stdout:
                if status := re.match(r"dlstatus:\d+:([\d.]+):", line):
                    bar.update(float(status[1]))
            complaint = process.stderr.read().strip().splitlines()
        packages = list(self.folder.glob("*.deb"))
        if process.returncode or not packages:
            why = complaint[-1] if complaint else "no reason given"
            if "No space left" in " ".join(complaint):
                steps.need_room(self.folder, 0.5, "the kernel's source")
            raise Failure(f"{name} could not be fetched from {self.mirror} ({why}); run the same command again")
        return packages[0]


def _last(result: subprocess.CompletedProcess[str]) -> str:
    lines = (result.stderr + result.stdout).strip().splitlines()
    return lines[-1] if lines else f"status {result.returncode}"


def unpack(origin: Source) -> None:
    """Make build/linux from the source, whole or not at all."""
    steps.need_room(paths.BUILD, 2.5, "the kernel's source tree")
    part = paths.LINUX.with_name("linux.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    if origin.path.is_dir():
        _copy_tree(origin.path, part)
    else:
        _untar(origin.path, part)
    try:
        _check_marks(part)
        check_series(part, read_pins())
    except Failure:
        shutil.rmtree(part)
        raise
    # What was remembered of the tree before goes first: it must not be taken
    # for knowledge of this one.
    for old in (paths.LINUX.with_name("linux.orig"), paths.LINUX):
        shutil.rmtree(old, ignore_errors=True)
    paths.LINUX.with_name("linux.overlay").unlink(missing_ok=True)
    identity = paths.BUILD / "linux.identity"
    if not identity.exists() or identity.read_text() != origin.identity:
        # Another kernel's files may be older than our objects, which make would then keep.
        for out in (paths.KERNEL_OUT, paths.BUILD / "kunit", *paths.BUILD.glob("kernel-*")):
            shutil.rmtree(out, ignore_errors=True)
        steps.write_whole(identity, origin.identity)
    part.rename(paths.LINUX)


def _copy_tree(source_tree: Path, target: Path) -> None:
    """Copy a kernel tree without its history and what was built inside it."""
    leave = [".git", "/.config*", "/include/config", "/include/generated", "/arch/*/include/generated", "*.o", "*.cmd", "*.a"]
    with Bar("copying KERNEL_SRC"):
        command = ["rsync", "-a", *(f"--exclude={pattern}" for pattern in leave), f"{source_tree}/", f"{target}/"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        if "No space left" in result.stderr:
            steps.need_room(target, 2.5, "the kernel's source tree")
        raise Failure(f"KERNEL_SRC could not be copied ({_last(result)}); see that it can be read")


MAGIC = {b"\xfd7zXZ": "--xz", b"\x1f\x8b": "--gzip", b"BZh": "--bzip2", b"\x28\xb5\x2f\xfd": "--zstd"}


def _untar(tarball: Path, target: Path) -> None:
    """Unpack a tarball that has one folder at its top."""
    with tarball.open("rb") as file:
        head = file.read(8)
        file.seek(0)
        packed = [option for magic, option in MAGIC.items() if head.startswith(magic)]
        command = ["tar", "-x", *packed, "--strip-components=1", "--no-same-owner", "-C", str(target)]
        with (
            Bar("unpacking the kernel (MiB)", tarball.stat().st_size >> 20) as bar,
            subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=False) as tar,
        ):
            assert tar.stdin is not None and tar.stderr is not None
            try:
                while block := file.read(1 << 20):
                    tar.stdin.write(block)
                    bar.advance()
                tar.stdin.close()
            except BrokenPipeError:
                pass
            complaint = tar.stderr.read().decode(errors="replace").strip().splitlines()
    if tar.returncode:
        shutil.rmtree(target)
        why = complaint[-1] if complaint else f"status {tar.returncode}"
        if any("No space left" in line for line in complaint):
            raise Failure(f"no room left for the kernel's source tree in {paths.BUILD}; free some space")
        raise Failure(f"the kernel's tarball {tarball.name} cannot be unpacked ({why}); name another or delete it")
