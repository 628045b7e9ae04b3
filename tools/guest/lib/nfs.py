# SPDX-License-Identifier: GPL-2.0
"""Mounts a folder through the NFS server of the same kernel.

No daemon is needed, but rpcbind for version 3: this module tells the server what rpc.mountd would tell it. The server
is that of the network namespace in which this module runs.
"""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc/fs/nfsd")
CACHES = Path("/proc/net/rpc")
IO = Path("/sys/kernel/debug/nfsd")
WAYS = {"buffered": 0, "dontcache": 1, "direct": 2}
"""How a server reads and writes, and what its files in debugfs say then."""

SPLICE, CACHING = "disable-splice-read", ("io_cache_read", "io_cache_write")
"""The files. What is read from the cache is sent as the pages that are there, unless they are read in another way."""

THREADS = 16

NEVER = 2**31 - 1
"""When what the server was told expires."""
INSECURE_PORT, NO_SUBTREE_CHECK, HAS_FSID = 0x2, 0x400, 0x2000
FSID_NUM, ROOT = 1, r"\x00000000"
"""How the root of all that is exported is named."""

GRACE = 10
"""Seconds in which clients that were here before could come back; no server takes less, nor knows that none was."""

GIVE_UP_SECONDS = 2
"""What it may take to unmount what no server is behind any more, before umount is killed."""

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
DATA_VERSION, TCP, VERSION_3, NO_LOCKS = 6, 0x40, 0x80, 0x200
"""Of struct nfs_mount_data."""


class NoServer(OSError):
    """There is no server to be had, and this is why."""


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


def _run(*command: object) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise NoServer(f"{' '.join(map(str, command))}: {' '.join(done.stderr.split())[-200:]}")


@contextlib.contextmanager
def _mounted(source: str, where: Path, kind: str, options: str = "defaults") -> Iterator[None]:
    # No helper of mount's is called for.
    _run("mount", "-i", "-t", kind, "-o", options, source, where)
    try:
        yield
    finally:
        _run("umount", where)


@contextlib.contextmanager
def _rpcbind() -> Iterator[None]:
    """A server of version 3 does not start without it."""
    _run("rpcbind")
    try:
        yield
    finally:
        _run("pkill", "-x", "rpcbind")


def _mount_3(root: Path, where: Path) -> None:
    """Mount version 3. Its client is given the handle of the root, which it would ask rpc.mountd for."""
    with open(PROC / "filehandle", "r+b", buffering=0) as file:
        file.write(f"loopback {root} 64\n".encode())
        handle = bytes.fromhex(file.read(4096).decode().removeprefix("\\x"))
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", 2049, socket.inet_aton("127.0.0.1"))
    data = struct.pack("=ii32xi32x16s256sii", DATA_VERSION, -1, TCP | VERSION_3 | NO_LOCKS, address, b"127.0.0.1", 0, 0)
    data += struct.pack("=H64s2xi260x", len(handle), handle, 0)
    if ctypes.CDLL(None).mount(b"127.0.0.1:/", str(where).encode(), b"nfs", 0, data):
        raise NoServer(f"{where}: version 3 cannot be mounted")


@contextlib.contextmanager
def _client(root: Path, where: Path, options: str, version: int) -> Iterator[None]:
    if version == 3:
        _mount_3(root, where)
    else:
        _run("mount", "-i", "-t", "nfs4", "-o", options, "127.0.0.1:/", where)
    try:
        yield
    finally:
        give_up(where)
        if any(line.split()[1] == str(where) for line in Path("/proc/self/mounts").read_text().splitlines()):
            raise NoServer(f"{where} cannot be unmounted; who has files open there?")


def _start(root: Path, largest: int = 0, version: int = 4) -> None:
    _tell("auth.unix.ip", "nfsd", "127.0.0.1", NEVER, "loopback")
    _tell("nfsd.export", "loopback", root, NEVER, INSECURE_PORT | NO_SUBTREE_CHECK | HAS_FSID, 0, 0, 0)
    _tell("nfsd.fh", "loopback", FSID_NUM, ROOT, NEVER, root)
    if largest:
        (PROC / "max_block_size").write_text(f"{largest}\n")
    (PROC / "nfsv4gracetime").write_text(f"{GRACE}\n")
    (PROC / "versions").write_text(f"{'+' if version == 3 else '-'}3 +4 +4.2\n")
    (PROC / "portlist").write_text("tcp 2049\n")
    (PROC / "threads").write_text(f"{THREADS}\n")
    deadline = time.monotonic() + 3 * GRACE
    while (PROC / "v4_end_grace").read_text() != "Y\n":
        if time.monotonic() > deadline:
            raise NoServer(f"the server's grace of {GRACE} s has not ended within {3 * GRACE} s")
        time.sleep(0.05)


@contextlib.contextmanager
def _server(root: Path, largest: int, version: int) -> Iterator[None]:
    if runs():
        raise NoServer("an NFS server is running already: stop it, for how it reads and writes would be changed")
    try:
        try:
            _start(root, largest, version)
        except OSError as error:
            raise NoServer(f"the server does not start: {error}") from None
        yield
    finally:
        (PROC / "threads").write_text("0\n")
        _forget_all()


@contextlib.contextmanager
def served(
    root: Path, where: Path = Path("/tmp/nfs"), options: str = "", largest: int = 0, version: int = 4
) -> Iterator[Path]:
    """The folder, exported to the loopback interface and mounted again, by version 4.2 or 3.

    largest: bytes that a read or write may have; a kernel with little memory takes few by itself.
    """
    if "nfsd" not in Path("/proc/filesystems").read_text().split():
        raise NoServer("this kernel has no NFS server (CONFIG_NFSD, or modprobe nfsd)")
    _loopback_up()
    where.mkdir(exist_ok=True)
    all_options = "addr=127.0.0.1,clientaddr=127.0.0.1,vers=4.2" + (f",{options}" if options else "")
    daemon = _rpcbind() if version == 3 else contextlib.nullcontext()
    server, client = _server(root, largest, version), _client(root, where, all_options, version)
    with _mounted("nfsd", PROC, "nfsd"), daemon, server, client, _kept_as_it_is():
        yield where


@contextlib.contextmanager
def _kept_as_it_is() -> Iterator[None]:
    """How the machine's server reads and writes is put back, splice first: without it the server reads in one way only."""
    before = {name: (IO / name).read_text().strip() for name in (SPLICE, *CACHING)}
    try:
        yield
    finally:
        for name, value in before.items():
            (IO / name).write_text(value)


def serve_by(way: str) -> None:
    """How the server reads and writes from now on."""
    (IO / SPLICE).write_text("0")
    for name in CACHING:
        path = IO / name
        path.write_text(str(WAYS[way]))
        if int(path.read_text(), 0) != WAYS[way]:
            raise NoServer(f"the server does not take {way}: {name} is {path.read_text().strip()}")


@contextlib.contextmanager
def stopped(root: Path) -> Iterator[None]:
    """No thread of the server runs, and it forgets its clients, and what it has exported."""
    (PROC / "threads").write_text("0\n")
    try:
        yield
    finally:
        _start(root)


def runs() -> bool:
    """Is there a server?"""
    return int((PROC / "threads").read_text()) > 0


def give_up(where: Path) -> None:
    """Unmount it. Those who wait for a server that is gone are let go; umount waits for it, too, until it is killed."""
    with subprocess.Popen(["umount", "-f", where], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            if not runs():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(GIVE_UP_SECONDS)
                process.kill()
            time.sleep(0.02)


def threads() -> list[int]:
    """The processes of the server's threads."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            if Path(f"/proc/{int(name)}/comm").read_text() == "nfsd\n":
                found.append(int(name))
    return found
