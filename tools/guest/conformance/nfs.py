# SPDX-License-Identifier: GPL-2.0
"""NFS with both ends in the guest. What rpc.mountd tells the server is told by hand, so that no daemon is needed."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from dontcache import run, until

PROC = Path("/proc/fs/nfsd")
CACHES = Path("/proc/net/rpc")
IO = Path("/sys/kernel/debug/nfsd")
WAYS = {"buffered": 0, "dontcache": 1, "direct": 2}
MOUNTED = Path("/tmp/nfs")

NEVER = 2**31 - 1
"""When what the server was told expires."""
INSECURE_PORT, NO_SUBTREE_CHECK, HAS_FSID = 0x2, 0x400, 0x2000
FSID_NUM, ROOT = 1, r"\x00000000"
"""How the root of all that is exported is named."""

GRACE = 10
"""Seconds; no server takes less."""

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def _loopback_up() -> None:
    """What `ip link set lo up` does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name, flags = struct.unpack("16sh", fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sh", b"lo", 0)))
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", name, flags | IFF_UP))


def _tell(cache: str, *words: object) -> None:
    (CACHES / cache / "channel").write_text(" ".join(map(str, words)) + "\n")


def _forget_all() -> None:
    """The exports hold their folders, which could not be unmounted otherwise."""
    for cache in ("auth.unix.ip", "nfsd.fh", "nfsd.export"):
        (CACHES / cache / "flush").write_text(f"{int(time.time()) + 1}\n")


@contextlib.contextmanager
def _mounted(source: str, where: Path, kind: str, options: str = "defaults") -> Iterator[None]:
    where.mkdir(exist_ok=True)
    # No helper of mount's is called for.
    run("mount", "-i", "-t", kind, "-o", options, source, where)
    try:
        yield
    finally:
        run("umount", where)


@contextlib.contextmanager
def _server(root: Path) -> Iterator[None]:
    try:
        _tell("auth.unix.ip", "nfsd", "127.0.0.1", NEVER, "guest")
        _tell("nfsd.export", "guest", root, NEVER, INSECURE_PORT | NO_SUBTREE_CHECK | HAS_FSID, 0, 0, 0)
        _tell("nfsd.fh", "guest", FSID_NUM, ROOT, NEVER, root)
        # Clients that were here before could come back; the server does not know that there were none.
        (PROC / "nfsv4gracetime").write_text(f"{GRACE}\n")
        (PROC / "versions").write_text("-3 +4\n")
        (PROC / "portlist").write_text("tcp 2049\n")
        (PROC / "threads").write_text("4\n")
        until(lambda: (PROC / "v4_end_grace").read_text() == "Y\n", 3 * GRACE, "an end of the grace")
        yield
    finally:
        (PROC / "threads").write_text("0\n")
        _forget_all()


@contextlib.contextmanager
def served(root: Path) -> Iterator[Path]:
    """The folder, exported and mounted again."""
    _loopback_up()
    options = "addr=127.0.0.1,clientaddr=127.0.0.1,vers=4.1"
    with (
        _mounted("nfsd", PROC, "nfsd"),
        _server(root),
        _mounted("127.0.0.1:/", MOUNTED, "nfs4", options),
    ):
        yield MOUNTED


def serve_by(way: str) -> None:
    """How the server reads and writes from now on."""
    for name in ("io_cache_read", "io_cache_write"):
        (IO / name).write_text(str(WAYS[way]))
