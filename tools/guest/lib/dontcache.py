# SPDX-License-Identifier: GPL-2.0
"""Helpers that the guest tests share: file systems, DONTCACHE writes, and state of the kernel to check."""

import contextlib
import ctypes
import mmap
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

RWF_DONTCACHE = 0x80
PAGE = mmap.PAGESIZE
KIB, MIB = 1 << 10, 1 << 20

NVME = os.environ["NVME"]
MOUNT = Path("/tmp/mnt")
DEBUGFS = Path("/sys/kernel/debug/rust_writeback")
HOLD = DEBUGFS / "hold"
VM = Path("/proc/sys/vm")
TRACEFS = Path("/sys/kernel/tracing")
CGROUPS = Path("/sys/fs/cgroup")

MKFS = {
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}

SYNC_FILE_RANGE_WRITE, SYNC_FILE_RANGE_WAIT_AFTER = 2, 4
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
_libc = ctypes.CDLL(None, use_errno=True)


def call(function: str, *arguments: object) -> int:
    """Calls a function of the C library, whose numbers may have 64 bits; an OSError if it fails."""
    wide = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    result: int = _libc[function](*wide)
    if result == -1:
        raise OSError(ctypes.get_errno(), function)
    return result


def start_writeback(fd: int, offset: int, length: int, wait: bool = False) -> None:
    """Starts the writeback of a range, and may wait for its end. The flusher has no part in it."""
    call("sync_file_range", fd, offset, length, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER * wait)


def punch_hole(fd: int, offset: int, length: int) -> None:
    """Makes a hole, which does not change the size. It does not let the flusher run as a program would."""
    call("fallocate", fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, offset, length)


def syncfs(fd: int) -> None:
    """Writes all that is dirty of the file's file system."""
    call("syncfs", fd)


def run(*command: object) -> str:
    """Runs a command that has to succeed, and returns its output."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{command[0]} exited with {done.returncode}: {done.stdout}"
    return done.stdout


def core() -> str:
    """The active writeback core: rust or c."""
    return (DEBUGFS / "core").read_text().strip()


def sanitizer() -> str:
    """The sanitizer that the kernel was built with; it is a slow kernel then."""
    found = re.search(r"\bsanitizer=(\w+)", Path("/proc/cmdline").read_text())
    return found[1] if found else ""


@contextlib.contextmanager
def file_system(kind: str, device: str = NVME, *options: object, mode: str = "rw", root: Path = MOUNT) -> Iterator[Path]:
    """A fresh file system of this kind on the device, made with these options, too, and mounted with this mode."""
    run(*MKFS[kind], *options, device)
    with mounted(kind, device, mode, root):
        yield root


@contextlib.contextmanager
def mounted(kind: str, device: str = NVME, mode: str = "rw", root: Path = MOUNT) -> Iterator[Path]:
    """The file system on the device, mounted with this mode."""
    root.mkdir(exist_ok=True)
    run("mount", "-t", kind, "-o", mode, device, root)
    try:
        yield root
    finally:
        run("umount", root)


def remount(kind: str) -> None:
    """Forgets all that is cached of the file system."""
    run("umount", MOUNT)
    run("mount", "-t", kind, NVME, MOUNT)


@contextlib.contextmanager
def frozen(root: Path) -> Iterator[None]:
    """Nobody changes the file system while the body runs."""
    run("fsfreeze", "--freeze", root)
    try:
        yield
    finally:
        run("fsfreeze", "--unfreeze", root)


def pattern(offset: int, length: int) -> bytes:
    """Data that tells its own place in the file."""
    words = range(offset // 8, (offset + length) // 8)
    return b"".join(word.to_bytes(8, "little") for word in words)


@contextlib.contextmanager
def opened(path: Path | str, flags: int = os.O_RDWR | os.O_CREAT) -> Iterator[int]:
    fd = os.open(path, flags, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def sync(fd: int) -> int:
    """The error of an fsync."""
    try:
        os.fsync(fd)
    except OSError as error:
        return error.errno or 0
    return 0


def write_dontcache(fd: int, offset: int, data: bytes | mmap.mmap) -> None:
    """One RWF_DONTCACHE write, whole."""
    written = os.pwritev(fd, [data], offset, RWF_DONTCACHE)
    assert written == len(data), f"wrote {written} of {len(data)} bytes"


def is_there(fd: int, offset: int, data: bytes | mmap.mmap) -> bool:
    """Does a read return this data, as it is cached and then from the drive?"""
    cached = os.pread(fd, len(data), offset) == data[:]
    os.fsync(fd)
    forget(fd, len(data), offset)
    return cached and os.pread(fd, len(data), offset) == data[:]


def write_pieces(fd: int, size: int, piece: int, flags: int = RWF_DONTCACHE, start: int = 0) -> None:
    """Writes so many zeros, a piece after the other."""
    for offset in range(start, start + size, piece):
        assert os.pwritev(fd, [bytes(piece)], offset, flags) == piece, f"a short write at {offset}"


class _Cachestat(NamedTuple):
    cache: int
    dirty: int
    writeback: int
    evicted: int
    recently_evicted: int


SYS_CACHESTAT = 451


def cachestat(fd: int, length: int = 0, start: int = 0) -> _Cachestat:
    """The page cache of the file, or of a part of it; the length 0 goes to its end."""
    stat, part = (ctypes.c_uint64 * 5)(), (ctypes.c_uint64 * 2)(start, length)
    call("syscall", SYS_CACHESTAT, fd, part, stat, 0)
    return _Cachestat(*stat)


def cached_pages(fd: int, length: int = 0, start: int = 0) -> int:
    """Pages of the file, or of a part of it, that are in the page cache."""
    return cachestat(fd, length, start).cache


def left_of(fd: int) -> int:
    """The pages of the file that the drive does not have."""
    stat = cachestat(fd)
    return stat.dirty + stat.writeback


def numbers_of(device: str = NVME, between: str = ":") -> str:
    """The two numbers by which the kernel names the device, or that of the file system of a folder."""
    number = os.stat(device).st_rdev or os.stat(device).st_dev
    return f"{os.major(number)}{between}{os.minor(number)}"


def drive_stat() -> list[int]:
    """What the drive has done: requests and sectors that were read, in the fields 0 and 2, and more."""
    return [int(field) for field in Path(f"/sys/class/block/{Path(NVME).name}/stat").read_text().split()]


def counter(device: str = NVME) -> tuple[int, int]:
    """The device's dirty dropbehind pages: as counted, and as a walk of its inodes finds them. btrfs-1 is one of its own."""
    name = device if device == "btrfs" else numbers_of(device)
    for line in (DEBUGFS / "dontcache_dirty").read_text().splitlines():
        bdi, counted, true = line.split()
        if bdi.partition("-")[0] == name:
            return int(counted), int(true)
    raise AssertionError(f"no line for {name} in dontcache_dirty")


def migrated() -> int:
    """Pages moved since boot."""
    line = re.search(r"^pgmigrate_success (\d+)", Path("/proc/vmstat").read_text(), re.M)
    assert line, "the kernel does not count what it moves"
    return int(line[1])


def memory() -> dict[str, int]:
    """KiB that are free, that are available, and that the kernel's objects have, once all is dropped that can be."""
    for _ in range(3):
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
        # Some of it is freed after a grace period of RCU.
        time.sleep(0.5)
    kib = {name: int(number) for name, number in re.findall(r"^(\w+): +(\d+) kB", Path("/proc/meminfo").read_text(), re.M)}
    # The kernel does not call free what a CPU keeps for its next allocations: 80 MiB, or none.
    pages = sum(map(int, re.findall(r"^ +count: +(\d+)$", Path("/proc/zoneinfo").read_text(), re.M)))
    kept = pages * PAGE // KIB
    return {"free": kib["MemFree"] + kept, "available": kib["MemAvailable"] + kept, "slab": kib["Slab"]}


def for_a_while(seconds: float) -> Iterator[None]:
    """Goes on until the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield


def waited(condition: Callable[[], bool], seconds: float) -> float | None:
    """The seconds until the condition held; None if it did not in time."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            return None
        time.sleep(0.005)
    return time.monotonic() - begin


def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Waits until the condition holds; fails when it does not in time."""
    assert waited(condition, seconds) is not None, f"not within {seconds} s: {what}"


def forget(fd: int, length: int = 0, start: int = 0) -> None:
    """Takes what is clean of the file, or of a part of it, out of the page cache: what follows comes from the device.

    What waits to be dropped is passed over, and leaves by itself.
    """
    # A page that is only in part meant stays, unless the file ends there.
    pages = length + -(start + length) % PAGE if length else 0

    def is_gone() -> bool:
        os.posix_fadvise(fd, start, pages, os.POSIX_FADV_DONTNEED)
        return cached_pages(fd, length, start) == 0

    until(is_gone, 5, "clean pages leave the page cache")


@contextlib.contextmanager
def trace(*events: str) -> Iterator[Callable[[], list[str]]]:
    """Traces these events; yields a function that returns the lines so far."""
    (TRACEFS / "tracing_on").write_text("0")
    (TRACEFS / "buffer_size_kb").write_text("8192")
    (TRACEFS / "trace").write_text("")

    def lines() -> list[str]:
        text = (TRACEFS / "trace").read_text()
        return [line for line in text.splitlines() if not line.startswith("#")]

    with contextlib.ExitStack() as stack:
        for event in events:
            stack.enter_context(setting(TRACEFS / "events" / event / "enable", 1))
        stack.enter_context(setting(TRACEFS / "tracing_on", 1))
        yield lines


@contextlib.contextmanager
def setting(file: Path, value: object) -> Iterator[None]:
    """The file has this value while the body runs."""
    # A choice shows all its values, and the one that is set in brackets.
    before = (text := file.read_text()).partition("[")[2].partition("]")[0] or text
    try:
        file.write_text(str(value))
        yield
    finally:
        file.write_text(before)


@contextlib.contextmanager
def knobs(**values: int) -> Iterator[None]:
    """Sets these below /proc/sys/vm."""
    with contextlib.ExitStack() as stack:
        for name, value in values.items():
            # A limit is in percent before and afterwards. The file of bytes says 0 then, and takes no 0.
            before = VM / name.replace("_bytes", "_ratio")
            stack.callback(before.write_text, before.read_text())
            (VM / name).write_text(str(value))
        yield


def never_periodic() -> contextlib.AbstractContextManager[None]:
    """Nothing is written because it is old."""
    return knobs(dirty_writeback_centisecs=0)


def never_many() -> contextlib.AbstractContextManager[None]:
    """Nothing is written because there is much of it: the limits are above all that a row writes."""
    return knobs(dirty_bytes=1536 * MIB, dirty_background_bytes=1024 * MIB)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """No writer asks for a round while the body runs, and there is no periodic writeback: pages stay dirty."""
    with never_periodic(), setting(HOLD, 1):
        yield


@contextlib.contextmanager
def flusher_held() -> Iterator[None]:
    """The flusher does not run as long as the body does not sleep, as with a drive that is slow.

    It shares a CPU with the caller, who goes first.
    """
    mask = Path("/sys/devices/virtual/workqueue/writeback/cpumask")
    # Else ordinary tasks have a twentieth of each second, however many real-time ones there are.
    share = Path("/sys/kernel/debug/sched/fair_server/cpu0/runtime")
    everywhere = os.sched_getaffinity(0)
    with setting(mask, 1), setting(share, 0):
        try:
            os.sched_setaffinity(0, {0})
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            yield
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.sched_setaffinity(0, everywhere)


@contextlib.contextmanager
def cgroup(name: str) -> Iterator[Path]:
    """A cgroup with the controllers that cgroup writeback needs."""
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    path = CGROUPS / name
    path.mkdir()
    try:
        yield path
    finally:
        until(lambda: _removed(path), 10, f"rmdir {path}")


def events(group: Path) -> dict[str, int]:
    """How often the cgroup was at its limit of memory, among others."""
    lines = (group / "memory.events").read_text().splitlines()
    return {name: int(count) for name, count in (line.split() for line in lines)}


def _removed(path: Path) -> bool:
    with contextlib.suppress(OSError):
        path.rmdir()
    return not path.exists()


def forked(function: Callable[[], None]) -> int:
    """Begins the function in a child process, which exits with 0 if it comes to its end."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        function()
        status = 0
    except BaseException as error:  # the parent has to hear of all of them
        print(f"# in a child: {error!r}", flush=True)
    finally:
        os._exit(status)


@contextlib.contextmanager
def beside(*functions: Callable[[], None]) -> Iterator[None]:
    """Runs each function in a child process while the body runs."""
    children = [forked(function) for function in functions]
    try:
        yield
    finally:
        failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    assert not failed, f"{failed} children failed"


def in_child(*functions: Callable[[], None]) -> None:
    """Runs each function in a child process, at the same time."""
    with beside(*functions):
        pass


def in_cgroup(path: Path, function: Callable[[], object]) -> None:
    """Runs the function in a child process that belongs to the cgroup."""

    def member() -> None:
        (path / "cgroup.procs").write_text(str(os.getpid()))
        function()

    in_child(member)


ENOUGH = Path("/tmp/enough")


@contextlib.contextmanager
def meanwhile(functions: Iterable[Callable[[], None]]) -> Iterator[None]:
    """Each runs in a process of its own while the body does: until there is `ENOUGH` of it."""
    with contextlib.ExitStack() as stack:
        stack.callback(ENOUGH.unlink)
        stack.enter_context(beside(*functions))
        stack.callback(ENOUGH.touch)
        yield
