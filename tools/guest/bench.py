# SPDX-License-Identifier: GPL-2.0
"""Run one boot's share of the comparison inside the guest.

Usage: bench.py PLAN, where PLAN is JSON: {"steps": [{"scenario", "mode", "text",
"environment", "keep"}], "interval": SECONDS, "fstype": "xfs"}. What happened goes
to stdout, a JSON object a line: one "guest", one "step" for each step, one "end".
A "refused" line and status 1 say why there can be no result.

The guest's CPU is slow where it is emulated. So fio's output is handed on as
the text that it is, and the sampler keeps its files open and takes its rest
from what a sample has cost.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import threading
import time
from typing import Any

DEBUGFS = os.environ.get("BENCH_DEBUGFS", "/sys/kernel/debug/rust_writeback")
TRACING = "/sys/kernel/tracing"
DIRECTORY = os.environ.get("BENCH_DIRECTORY", "/mnt/bench")
SYS_CACHESTAT = 451
FIO_SECONDS = 120
SHARE_OF_TIME = 0.05
"""What part of the time the sampler may take from fio."""


class Refused(Exception):
    """There is no result, and this is why."""


class Range(ctypes.Structure):
    """struct cachestat_range."""

    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class Cachestat(ctypes.Structure):
    """struct cachestat."""

    _fields_ = [
        (name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted")
    ]


LIBC = ctypes.CDLL(None, use_errno=True)


def say(kind: str, **fields: Any) -> None:
    """One line for the host."""
    sys.stdout.write(json.dumps({"kind": kind, **fields}) + "\n")
    sys.stdout.flush()


def read(path: str) -> str:
    """A small file, without the newline at its end."""
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read().strip()


def cached_pages(directory: str) -> dict[str, int]:
    """The pages of all files that the page cache holds, by cachestat(2)."""
    total = {"cache": 0, "dirty": 0, "writeback": 0, "files": 0}
    for entry in os.scandir(directory):
        descriptor = os.open(entry.path, os.O_RDONLY)
        try:
            whole, found = Range(0, 0), Cachestat()
            if LIBC.syscall(SYS_CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(found), 0):
                raise Refused(f"cachestat failed: {os.strerror(ctypes.get_errno())}")
            total["cache"] += found.cache
            total["dirty"] += found.dirty
            total["writeback"] += found.writeback
            total["files"] += 1
        finally:
            os.close(descriptor)
    return total


def write(path: str, text: str) -> None:
    """One value into a file of the kernel."""
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def counter(text: bytes, bdi: bytes) -> tuple[int, int]:
    """COUNTED and TRUE of one bdi: what the counter claims, what a walk finds."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == bdi:
            return int(words[1]), int(words[2])
    raise Refused(f"dontcache_dirty has no line for {bdi.decode()}")


def vmstat(text: bytes, name: bytes) -> int:
    """One value of /proc/vmstat, without taking all the others apart."""
    start = text.index(b"\n" + name + b" ") + len(name) + 2
    return int(text[start : text.index(b"\n", start)])


class Rounds:
    """Counts the rounds that the flusher makes with the reason "dontcache".

    A round starts with the pages that the counter claims, so one event proves
    that the counter had moved, even where every sample came too late. The
    ring buffer is small and keeps the first events: reading them as text is
    slow in an emulated guest.
    """

    EVENT = f"{TRACING}/events/writeback/writeback_start"

    def __init__(self) -> None:
        reason = re.search(r'\{ *(\w+), *"dontcache" *\}', read(f"{self.EVENT}/format"))
        if not reason:
            raise Refused("the trace event writeback_start knows no reason dontcache")
        write(f"{TRACING}/tracing_on", "0")
        write(f"{TRACING}/buffer_size_kb", "16")
        write(f"{TRACING}/options/overwrite", "0")
        write(f"{self.EVENT}/filter", f"reason == {int(reason[1], 0)}")
        write(f"{self.EVENT}/enable", "1")

    def begin(self) -> None:
        """Forget what was, and count."""
        write(f"{TRACING}/trace", "")
        write(f"{TRACING}/tracing_on", "1")

    def end(self) -> dict[str, int]:
        """How many rounds there were, and the most pages that one began with."""
        write(f"{TRACING}/tracing_on", "0")
        rounds = 0
        for cpu in range(os.cpu_count() or 1):
            for line in read(f"{TRACING}/per_cpu/cpu{cpu}/stats").splitlines():
                name, _, value = line.partition(":")
                if name in ("entries", "overrun", "dropped events"):
                    rounds += int(value)
        pages = [int(number) for number in re.findall(r"nr_pages=(\d+) .*reason=dontcache", read(f"{TRACING}/trace"))]
        return {"rounds": rounds, "most_pages": max(pages, default=0)}


class Sampler(threading.Thread):
    """Reads what is dirty and what the counter says, while fio runs."""

    def __init__(self, bdi: bytes, interval: float) -> None:
        super().__init__(daemon=True)
        self.bdi = bdi
        self.interval = interval
        self.rows: list[list[float]] = []
        self.cost = 0.0
        self.error = ""
        self.done = threading.Event()
        self.files = [os.open(path, os.O_RDONLY) for path in ("/proc/vmstat", f"{DEBUGFS}/dontcache_dirty")]

    def sample(self) -> None:
        """Seconds, dirty pages, pages under writeback, COUNTED."""
        begin = time.thread_time()
        now = time.monotonic()
        memory = os.pread(self.files[0], 1 << 16, 0)
        counted, _ = counter(os.pread(self.files[1], 1 << 16, 0), self.bdi)
        self.rows.append([round(now, 4), vmstat(memory, b"nr_dirty"), vmstat(memory, b"nr_writeback"), counted])
        self.cost = time.thread_time() - begin

    def run(self) -> None:
        """Sample until told to stop, ahead of the load that fills all CPUs."""
        try:
            os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(1))
            while not self.done.wait(max(self.interval, self.cost / SHARE_OF_TIME)):
                self.sample()
        except (OSError, ValueError, Refused) as error:
            self.error = str(error)

    def stop(self) -> list[list[float]]:
        """End the thread; the samples, with seconds counted from the first."""
        self.done.set()
        self.join()
        for descriptor in self.files:
            os.close(descriptor)
        if self.error:
            raise Refused(f"the sampler failed: {self.error}")
        first = self.rows[0][0] if self.rows else 0.0
        return [[round(row[0] - first, 4), *row[1:]] for row in self.rows]


def counter_now(bdi: bytes) -> tuple[int, int]:
    """The counter at this moment."""
    with open(f"{DEBUGFS}/dontcache_dirty", "rb") as file:
        return counter(file.read(), bdi)


def pages_migrated() -> int:
    """Pages that compaction has moved so far: folios that move keep or lose their flags."""
    with open("/proc/vmstat", "rb") as file:
        text = file.read()
    return vmstat(text, b"pgmigrate_success") if b"\npgmigrate_success " in text else 0


def begin_cold() -> None:
    """Begin with nothing dirty and none of the files cached.

    drop_caches would take fio itself out of the cache as well.
    """
    os.sync()
    for entry in os.scandir(DIRECTORY):
        descriptor = os.open(entry.path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def run_step(step: dict[str, Any], bdi: bytes, interval: float, rounds: Rounds) -> None:
    """One scenario in one mode: load, look, clean up."""
    job = "/tmp/job.fio"
    write(job, step["text"])
    command = ["fio", "--output-format=json+", "--eta=never", job]
    environment = {**os.environ, **step["environment"], "BENCH_DIRECTORY": DIRECTORY}
    begin_cold()
    before, migrated = counter_now(bdi), pages_migrated()
    sampler = Sampler(bdi, interval)
    rounds.begin()
    sampler.start()
    begin = time.monotonic()
    try:
        fio = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=FIO_SECONDS)
    except subprocess.TimeoutExpired:
        raise Refused(f"fio did not end within {FIO_SECONDS} seconds") from None
    took = time.monotonic() - begin
    samples = sampler.stop()
    flusher = rounds.end()
    cached_at_end, at_end = cached_pages(DIRECTORY), counter_now(bdi)
    begin = time.monotonic()
    os.sync()
    sync = time.monotonic() - begin
    cached_after, after = cached_pages(DIRECTORY), counter_now(bdi)
    say(
        "step",
        scenario=step["scenario"],
        mode=step["mode"],
        command=command,
        environment=step["environment"],
        status=fio.returncode,
        fio=fio.stdout,
        stderr=fio.stderr[-2000:],
        seconds=round(took, 3),
        sync_seconds=round(sync, 3),
        sample_seconds=round(sampler.cost, 4),
        samples=samples,
        dontcache_rounds=flusher,
        pages_migrated=pages_migrated() - migrated,
        counter_before=before,
        counter_at_end=at_end,
        counter_after=after,
        cached_at_end=cached_at_end,
        cached_after=cached_after,
    )
    if not step["keep"]:
        for entry in list(os.scandir(DIRECTORY)):
            os.unlink(entry.path)


def prepare(device: str, fstype: str) -> bytes:
    """A fresh file system on the drive; the name that its bdi has in debugfs."""
    if not os.path.isdir(DEBUGFS):
        raise Refused(f"{DEBUGFS} is missing: this kernel has no writeback core to compare")
    os.makedirs(DIRECTORY, exist_ok=True)
    force = {"xfs": ["-f", "-q", "-K"], "ext4": ["-F", "-q"]}[fstype]
    for command in (
        [f"mkfs.{fstype}", *force, device],
        ["mount", "-t", fstype, device, DIRECTORY],
    ):
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            raise Refused(f"{' '.join(command)}: {' '.join(result.stderr.split())[-300:]}")
    number = os.stat(DIRECTORY).st_dev
    return f"{os.major(number)}:{os.minor(number)}".encode()


def main() -> int:
    """Do what the plan says."""
    try:
        plan = json.loads(sys.argv[1])
        bdi = prepare(os.environ["NVME"], plan["fstype"])
        uname = os.uname()
        say(
            "guest",
            core=read(f"{DEBUGFS}/core"),
            kernel=f"{uname.release} {uname.version}",
            cmdline=read("/proc/cmdline"),
            memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            cpus=os.cpu_count(),
            uptime=float(read("/proc/uptime").split()[0]),
            dirty_ratio=int(read("/proc/sys/vm/dirty_ratio")),
            dirty_background_ratio=int(read("/proc/sys/vm/dirty_background_ratio")),
        )
        rounds = Rounds()
        for step in plan["steps"]:
            run_step(step, bdi, plan["interval"], rounds)
        subprocess.run(["umount", DIRECTORY], check=True)
        say("end", core=read(f"{DEBUGFS}/core"), uptime=float(read("/proc/uptime").split()[0]))
        return 0
    except (Refused, KeyError, OSError, subprocess.SubprocessError) as error:
        say("refused", reason=str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
