# SPDX-License-Identifier: GPL-2.0
"""Unpacks Debian packages into the cache, without installing them in the build root.

They are for another architecture, or of another release of Debian. They are fetched from the same place as the
build root's own packages, with all that they depend on, once for each list of packages.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .. import paths, steps
from ..arch import X86
from ..errors import Failure

SOURCES = Path("/etc/apt/sources.list")
"""Of the build root: a line of it is `deb MIRROR SUITE main`."""


@dataclass(frozen=True)
class Packages:
    """Packages that belong together."""

    name: str
    """Of their folder in the cache."""
    what: str
    """What they are, in words."""
    names: tuple[str, ...]
    gib: float
    """Room for them and what is in them."""
    debian: str = X86.debian
    """Debian's name of their architecture."""
    suite: str = ""
    """Of this suite of Debian; of the build root's own if there is none."""

    def folder(self) -> Path:
        """Where they are unpacked; it is made if need be."""
        top = paths.CACHE / f"{self.name}-{steps.digest(self.suite, *self.names, Path(__file__))[:16]}"
        with steps.only_one(self.name):
            if not top.exists():
                steps.need_room(paths.CACHE, self.gib, self.what)
                self._make(top)
        return top

    def command(self, program: str) -> list[str]:
        """How a program of a newer release is run: with the C library that it was made for."""
        libraries = self.folder() / "usr/lib/x86_64-linux-gnu"
        loader = libraries / "ld-linux-x86-64.so.2"
        return [str(word) for word in (loader, "--library-path", libraries, self.folder() / "usr" / program)]

    def _make(self, top: Path) -> None:
        print(f"fetching and unpacking {self.what} ...", flush=True)
        part = top.with_name(f".{top.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        with tempfile.TemporaryDirectory() as folder:
            apt = Apt(Path(folder), self.what, self.debian, self.suite)
            apt.run("apt-get", "install", "--download-only", *self.names)
            fetched = [*(apt.folder / "archives").glob("*.deb")]
            if not fetched:
                raise Failure(f"apt takes no copy of packages from {mirror()}; give DEBIAN_MIRROR one on the network")
            extract(fetched, part)
        part.rename(top)


class Apt:
    """apt with lists and sources of its own in a folder, in which no package is installed."""

    def __init__(self, folder: Path, what: str, debian: str = X86.debian, suite: str = "") -> None:
        self.folder = folder
        self.what = what
        (folder / "status").touch()
        self.options = {
            "APT::Architecture": debian,
            "APT::Architectures": debian,
            "APT::Get::Assume-Yes": "true",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            "APT::Update::Error-Mode": "any",
            # A mirror may be weeks behind, and what it has is signed all the same.
            "Acquire::Check-Valid-Until": "false",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Dir::State": str(folder),
            "Dir::State::status": str(folder / "status"),
            "Dir::Cache": str(folder),
            "Dir::Etc::SourceParts": "/dev/null",
        }
        if suite:
            self.options["Dir::Etc::SourceList"] = str(folder / "sources.list")
            (folder / "sources.list").write_text(f"deb {mirror()} {suite} main\n")
        self.run("apt-get", "update")

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of apt in the folder; what it prints."""
        command = [program, "-qq", *(f"-o{name}={value}" for name, value in self.options.items()), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            last = ([line for line in done.stderr.splitlines() if line.startswith("E:")] or [f"status {done.returncode}"])[-1]
            raise Failure(f"{self.what} could not be fetched: {last}; check the network, or set DEBIAN_MIRROR")
        return done.stdout


def mirror() -> str:
    """The mirror that the build root was made from, unless the user names another."""
    return os.environ.get("DEBIAN_MIRROR") or SOURCES.read_text().split()[1]


def extract(packages: Iterable[Path], folder: Path) -> None:
    """Unpack packages into a folder, which is made."""
    folder.mkdir(parents=True)
    # The links /bin, /lib and /sbin come first, for others have files behind them.
    for package in sorted(packages, key=lambda path: (not path.name.startswith("base-files_"), path)):
        done = subprocess.run(["dpkg-deb", "--extract", package, folder], capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"{package.name} cannot be unpacked: {done.stderr.strip()}; is there room on the disk?")
