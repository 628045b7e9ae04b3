# SPDX-License-Identifier: GPL-2.0
"""The folder or block device of a real machine that is measured, and checks whether it is fit for that.

tools/enter has made a fresh folder in the named one. It binds nothing else of the named folder into the build
root, and removes the fresh folder in the end.
"""

import contextlib
import os
import platform
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import Failure
from . import catalogue

SLACK = 256 << 20
"""Bytes that stay free: a file system that is full to the last block is another load."""

DEBUGFS = Path("/sys/kernel/debug/rust_writeback")
NFSD = Path("/sys/kernel/debug/nfsd")
FILE_SYSTEMS = Path("/proc/filesystems")
LOCALIO = Path("/sys/module/nfs/parameters/localio_enabled")
SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
NFS_PORT, LISTENING = 2049, "0A"
SYS = Path("/sys/dev/block")


@dataclass(frozen=True)
class Target:
    """What is measured. A path is as the build root has it, a name as the machine has it."""

    path: Path
    name: str
    place: str
    """the type of the file system, or that there is none"""

    @property
    def bare(self) -> bool:
        """Is it a block device?"""
        return self.place == catalogue.BARE

    @property
    def sys(self) -> Path:
        """What sysfs knows of the device; btrfs has files on none."""
        found = self.path.stat()
        number = found.st_rdev if self.bare else found.st_dev
        return SYS / f"{os.major(number)}:{os.minor(number)}"

    def plan(self) -> dict[str, str]:
        """What the driver must know of it."""
        return {"file_system": self.place, "device" if self.bare else "directory": str(self.path)}

    def check_room(self, loads: Sequence[catalogue.Load]) -> None:
        """Stop where the files of a load, and those of the one before it, may not fit."""
        if self.bare:
            with open(self.path, "rb") as file:
                room, needed = file.seek(0, os.SEEK_END), max(load.scenario.footprint for load in loads)
        else:
            room = shutil.disk_usage(self.path).free - SLACK
            needed = sum(sorted(load.scenario.footprint for load in loads)[-2:])
        if room < needed:
            raise Failure(
                f"{self.name} has room for {max(room, 0) / 1e6:.0f} MB of files, {needed / 1e6:.0f} MB are needed;"
                " free some, or take a smaller SIZE"
            )

    def check(self, dontcache: bool) -> None:
        """Whatever would make the loads fail or measure something else, before the first of them."""
        if self.bare:
            try:
                # First without writing: to write to what is mounted may be forbidden altogether.
                for flags in (os.O_RDONLY, os.O_RDWR):
                    os.close(os.open(self.path, flags | os.O_EXCL))
            except OSError as error:
                raise Failure(
                    f"{self.name} cannot be had ({error.strerror}): it must not be mounted, swapped to, held or read-only,"
                    " nor any partition of it, and this must be root",
                    2,
                ) from None
        # Otherwise fio would say it of every single load.
        where = [f"--filename={self.path}", "--rw=read"] if self.bare else [f"--directory={self.path}", "--rw=write", "--unlink=1"]
        probe = ["fio", "--name=probe", "--ioengine=io_uring", "--size=4k", f"--uncached={int(dontcache)}", *where]
        done = subprocess.run(probe, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Failure(
                f"fio cannot use {self.name} ({self.place}) on Linux {platform.release()}: {' '.join(done.stderr.split())[-300:]};"
                " loads need io_uring (see the sysctl kernel.io_uring_disabled, and what contains this shell), and DONTCACHE"
                " needs Linux 6.14 or later and a file system that has it, such as xfs"
            )


def find(destructive: bool, environment: Mapping[str, str] = os.environ) -> Target:
    """What tools/enter --target has handed over."""
    if "TARGET" not in environment:
        raise Failure("there is no target; give one as make bench TARGET=/mnt/point", 2)
    path, name = Path(environment["TARGET"]), environment.get("TARGET_NAME", environment["TARGET"])
    if not stat.S_ISBLK(path.stat().st_mode):
        if destructive:
            raise Failure(f"DESTRUCTIVE=1 is for a block device, {name} is a folder; omit DESTRUCTIVE=1", 2)
        return Target(path, name, file_system(path))
    if not destructive:
        raise Failure(f"{name} is a block device, whose data would be lost; to allow that, give DESTRUCTIVE=1", 2)
    return Target(path, name, catalogue.BARE)


def file_system(folder: Path) -> str:
    """The type of the file system that a folder is in."""
    command = ["findmnt", "--noheadings", "--output=FSTYPE", f"--target={folder}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]


def served(where: Target) -> Target:
    """The same through an NFS server of this machine, which must be free for it."""
    if where.bare:
        raise Failure(f"--place nfs exports a folder, {where.name} is a block device; name a folder", 2)
    if not may_administer():
        raise Failure("--place nfs starts an NFS server: run as root", 2)
    known = {line.split()[-1] for line in FILE_SYSTEMS.read_text().splitlines()}
    if not {"nfs4", "nfsd"} <= known:
        raise Failure("this kernel lacks NFS; load it with: modprobe -a nfs nfsd, or boot one that has it", 2)
    if not os.access(NFSD / "io_cache_write", os.W_OK):
        raise Failure(f"{NFSD} does not say how the server writes; mount debugfs, and boot Linux 6.19 or later", 2)
    if LOCALIO.exists() and LOCALIO.read_text().strip() == "Y":
        raise Failure(f"the NFS client would bypass a server of its own machine; forbid it with: echo N >{LOCALIO}", 2)
    if any(table.exists() and _listens(table) for table in SOCKETS):
        raise Failure("an NFS server is running, and its mode would be changed; stop it first", 2)
    return replace(where, place=catalogue.NFS)


def _listens(table: Path) -> bool:
    """Does anybody listen on the port of NFS, by what the kernel tells of its sockets?"""
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{NFS_PORT:04X}") and row[3] == LISTENING for row in rows)


def may_administer() -> bool:
    """Are we root of the machine, not only of a namespace? tools/enter is root either way."""
    whole = ["0", "0", str(2**32 - 1)]
    return os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split() == whole


def active_core() -> str:
    """The core that runs: ours, where we may look at it, or else the kernel as it is."""
    with contextlib.suppress(OSError):
        return (DEBUGFS / "core").read_text().strip()
    return ""


def drive(target: Target) -> str:
    """What sysfs calls the drive."""
    folder = target.sys.resolve()
    for path in (folder / "device/model", folder.parent / "device/model"):
        with contextlib.suppress(OSError):
            return path.read_text().strip()
    return folder.name if folder.exists() else "unknown"
