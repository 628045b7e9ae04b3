# SPDX-License-Identifier: GPL-2.0
"""Debian's packages for another architecture than the build root's, unpacked and never run here.

A guest runs what is in them, and its static programs are compiled against them. They are fetched from
where the build root's own are, once for each list of packages, into the cache.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .. import paths, steps
from ..arch import Arch
from ..errors import Failure

ESSENTIAL = ("base-files", "base-passwd")
"""What Debian takes for granted, and a guest needs."""

DEVELOPMENT = ("libc6-dev", "libgcc-14-dev", "liburing-dev")
"""What its static programs are linked with."""

UNPACKED_GIB = 0.7
"""Room for the packages and what is in them: 0.1 and 0.35 GiB of 2026."""


def _apt(arch: Arch, folder: Path, *arguments: str) -> None:
    """Run apt-get with a state of its own in the folder, in which no package is installed."""
    options = {
        "APT::Architecture": arch.debian,
        "APT::Architectures": arch.debian,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        "Dir::State": str(folder),
        "Dir::State::status": str(folder / "status"),
        "Dir::Cache": str(folder),
    }
    command = ["apt-get", "-qq", "-y", *(f"-o{name}={value}" for name, value in options.items()), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = ([line for line in done.stderr.splitlines() if line.startswith("E:")] or [f"status {done.returncode}"])[-1]
        raise Failure(f"the {arch.name} packages of the guest could not be fetched: {last}; check the network")


def tree(arch: Arch, packages: Sequence[str]) -> Path:
    """The folder in which these packages and what they depend on are unpacked; it is made if need be."""
    wanted = [*ESSENTIAL, *packages, *DEVELOPMENT]
    top = paths.CACHE / f"guest-{arch.name}-{steps.digest(*wanted, Path(__file__))[:16]}"
    with steps.only_one(f"guest-{arch.name}"):
        if not top.exists():
            steps.need_room(paths.CACHE, UNPACKED_GIB, f"the {arch.name} packages of the guest")
            _make(arch, wanted, top)
    return top


def _make(arch: Arch, wanted: Sequence[str], top: Path) -> None:
    print(f"fetching and unpacking the guest's packages for {arch.name} ...", flush=True)
    part = top.with_name(f".{top.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "status").touch()
        _apt(arch, folder, "update")
        _apt(arch, folder, "install", "--download-only", *wanted)
        # The links /bin, /lib and /sbin come first, for others have files behind them.
        for package in sorted((folder / "archives").glob("*.deb"), key=lambda path: not path.name.startswith("base-files_")):
            done = subprocess.run(["dpkg-deb", "--extract", package, part], capture_output=True, text=True)
            if done.returncode:
                raise Failure(f"{package.name} cannot be unpacked: {done.stderr.strip()}; is there room on the disk?")
    part.rename(top)
