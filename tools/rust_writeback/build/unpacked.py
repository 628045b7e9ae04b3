# SPDX-License-Identifier: GPL-2.0
"""Unpacks Debian packages into the cache, without installing them in the build root.

They are for another architecture, or of another release of Debian. They are fetched from the same place as the
build root's own packages, with all that they depend on, once for each list of packages.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
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
        part.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "status").touch()
            self._apt(folder, "update")
            self._apt(folder, "install", "--download-only", *self.names)
            _unpack(sorted((folder / "archives").glob("*.deb")), part)
        part.rename(top)

    def _apt(self, folder: Path, *arguments: str) -> None:
        """Run apt-get with a state of its own in the folder, in which no package is installed."""
        options = {
            "APT::Architecture": self.debian,
            "APT::Architectures": self.debian,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            # A mirror may be weeks behind, and what it has is signed all the same.
            "Acquire::Check-Valid-Until": "false",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Dir::State": str(folder),
            "Dir::State::status": str(folder / "status"),
            "Dir::Cache": str(folder),
        }
        if self.suite:
            options["Dir::Etc::SourceList"] = str(folder / "sources.list")
            (folder / "sources.list").write_text(f"deb {mirror()} {self.suite} main\n")
        command = ["apt-get", "-qq", "-y", *(f"-o{name}={value}" for name, value in options.items()), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            last = ([line for line in done.stderr.splitlines() if line.startswith("E:")] or [f"status {done.returncode}"])[-1]
            raise Failure(f"{self.what} could not be fetched: {last}; check the network")


def mirror() -> str:
    """The mirror that the build root was made from, unless the user names another."""
    return os.environ.get("DEBIAN_MIRROR") or SOURCES.read_text().split()[1]


def _unpack(packages: Sequence[Path], part: Path) -> None:
    # The links /bin, /lib and /sbin come first, for others have files behind them.
    for package in sorted(packages, key=lambda path: not path.name.startswith("base-files_")):
        done = subprocess.run(["dpkg-deb", "--extract", package, part], capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"{package.name} cannot be unpacked: {done.stderr.strip()}; is there room on the disk?")
