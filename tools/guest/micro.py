# SPDX-License-Identifier: GPL-2.0
"""Run the micro-benchmarks inside the guest and hand on what they say.

The kernel's works on a real inode: a file descriptor's number, written to the
file "micro", names one of the writer's own files. It is dirtied first, for an
inode that was never dirtied has no writeback domain to count in. The program
/share/overwrite works on a fresh ext4 for each block size. What a round of the flusher
takes is told by the tracepoints of its work. On stdout: one JSON object with the
core, the kernel's lines "OP INSTRUCTIONS", the program's by block size, a round's
by how many other inodes are dirty, and with the Rust core the longest look of one
and what it takes for many files that are dirty when it begins.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

DEBUGFS = "/sys/kernel/debug/rust_writeback"
DIRECTORY = "/tmp/micro"
BLOCKS = (4096, 1024)
TRACING = Path("/sys/kernel/tracing")
DIRTY = (10, 100_000)
"""Other inodes that are dirty while a round is for one page."""
WITH_PAGE = 20_000
"""How many of them have a dirty page: memory is short."""
FILES = (2_000, 20_000)
"""Inodes with a page each that are all dirty when their round begins."""
INODES, PAGES = 32, 128
"""Twice as many as the flusher looks at under one hold of the lock of its lists: inodes, and pages of each."""
APART = 64 * 4096
"""Bytes from page to page: each is in a node of its own."""
ATTEMPTS = 6
LONGEST_DELAY = 0.25
"""Seconds within which there is a round for a page: it may wait for 200 ms."""
ROUNDS = 6
"""Seconds within which as many files as there are have been written."""
RUN = re.compile(r"([\d.]+): workqueue_execute_(start|end): work struct \S+ function wb_workfn")
RWF_DONTCACHE = 0x80
DEVICE = "/dev/ram0"
"""Answers at once: what a drive's interrupts cost would differ from boot to boot."""
QUIET = {
    "/sys/kernel/mm/transparent_hugepage/enabled": "always",
    "/proc/sys/vm/dirty_writeback_centisecs": "0",
    "/proc/sys/vm/dirty_ratio": "95",
    "/proc/sys/vm/dirty_background_ratio": "90",
}
"""Large folios, and no writeback that was not asked for."""


def read(name: str) -> str:
    """One of our debugfs files."""
    return Path(f"{DEBUGFS}/{name}").read_text()


@contextlib.contextmanager
def ext4(*options: str) -> Iterator[None]:
    """A fresh ext4 on the device, mounted as it is by default."""
    os.makedirs(DIRECTORY, exist_ok=True)
    subprocess.run(["mkfs.ext4", "-F", "-q", *options, DEVICE], check=True, stdout=sys.stderr)
    subprocess.run(["mount", "-t", "ext4", DEVICE, DIRECTORY], check=True)
    yield
    subprocess.run(["umount", DIRECTORY], check=True)


def operations(name: str, *results: str) -> list[str]:
    """Let the kernel measure on a file, and take what it shows then."""
    with ext4(), open(f"{DIRECTORY}/file", "w+b") as file:
        file.write(bytes(1 << 20))
        file.flush()
        Path(f"{DEBUGFS}/{name}").write_text(str(file.fileno()))
    return [line for result in results for line in read(result).splitlines()]


def overwrites(block: int) -> list[str]:
    """Overwrite files on an ext4 with such blocks."""
    # All is initialised at once: nothing is left for a thread of the kernel.
    with ext4("-b", str(block), "-E", "lazy_itable_init=0,lazy_journal_init=0"):
        result = subprocess.run(["/share/overwrite", DIRECTORY], check=True, stdout=subprocess.PIPE, text=True)
    return result.stdout.splitlines()


def runs() -> list[int]:
    """How long each run of the flusher has taken since this was called last, in instructions."""
    text = (TRACING / "trace").read_text()
    (TRACING / "trace").write_text("")
    stamps = [int(stamp) if stamp.isdecimal() else round(float(stamp) * 1e9) for stamp, _ in RUN.findall(text)]
    return [end - start for start, end in zip(stamps[::2], stamps[1::2], strict=True)]


def round_beside(dirty: int) -> int:
    """What a kick for one page costs the flusher while so many other inodes are dirty: the least of some."""
    page = bytes(4096)
    costs = []
    for number in range(dirty):
        Path(f"{DIRECTORY}/{number}").write_bytes(page if number < WITH_PAGE else b"")
    with open(f"{DIRECTORY}/page", "w+b", buffering=0) as file:
        for attempt in range(ATTEMPTS):
            runs()
            os.pwritev(file.fileno(), [page], 0, RWF_DONTCACHE)
            time.sleep(LONGEST_DELAY)
            # The first one has to find a place for the page.
            if attempt:
                costs.append(sum(runs()))
    if not all(costs):
        raise SystemExit(f"error: the flusher had no round for a page within {LONGEST_DELAY} s")
    return min(costs)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """The flusher does not run as long as the body does not sleep: there is one CPU, and a real-time task has it."""
    limit = Path("/proc/sys/kernel/sched_rt_runtime_us")
    before = limit.read_text()
    limit.write_text("-1")
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        limit.write_text(before)


def files_at_once(count: int) -> int:
    """What the flusher takes for so many files of a page that are all dirty when their round begins."""
    page = bytes(4096)
    paths = [Path(f"{DIRECTORY}/{number}") for number in range(count)]
    for path in paths:
        path.write_bytes(page)
    os.sync()
    # What is cached would not become dropbehind.
    Path("/proc/sys/vm/drop_caches").write_text("1")
    # The writes below must not wait for the blocks of the inodes to be read.
    for path in paths:
        os.utime(path)
    os.sync()
    runs()
    with held():
        for path in paths:
            with path.open("r+b", buffering=0) as file:
                os.pwritev(file.fileno(), [page], 0, RWF_DONTCACHE)
        if f" {count} {count}\n" not in read("dontcache_dirty"):
            raise SystemExit(f"error: not {count} pages are dirty: {read('dontcache_dirty')}")
    time.sleep(ROUNDS)
    if re.search(r" [1-9]\d* \d+$", read("dontcache_dirty"), re.MULTILINE):
        raise SystemExit(f"error: some of {count} pages stay dirty: {read('dontcache_dirty')}")
    return sum(runs())


def longest_look() -> int:
    """What a round costs that looks at as much as it may, and finds nothing to write.

    All of that is under the lock of the flusher's lists, and some more is not. The inodes have had
    dropbehind pages, which somebody has read meanwhile, and have others that are dirty.
    """
    page = bytes(4096)
    with contextlib.ExitStack() as files:
        opened = [files.enter_context(open(f"{DIRECTORY}/look{n}", "w+b", buffering=0)) for n in range(INODES)]
        # Small folios, and each as far from the next as the page cache can make dearer.
        for file in opened:
            for number in range(PAGES):
                os.pwrite(file.fileno(), page, number * APART)
        runs()
        for file in opened:
            os.pwritev(file.fileno(), [page], PAGES * APART, RWF_DONTCACHE)
            os.pread(file.fileno(), len(page), PAGES * APART)
        time.sleep(LONGEST_DELAY)
        return max(runs())


def traced() -> None:
    """Has the flusher's runs traced."""
    subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=False, stderr=subprocess.DEVNULL)
    # Of x86's own clock the trace shows each tick, of others a thousand.
    own = "x86-tsc" in (TRACING / "trace_clock").read_text()
    (TRACING / "trace_clock").write_text("x86-tsc" if own else "mono")
    for name in ("workqueue_execute_start", "workqueue_execute_end"):
        (TRACING / "events" / "workqueue" / name / "enable").write_text("1")


def by_count(measure: Callable[[int], int], counts: Sequence[int]) -> dict[int, int]:
    """What is measured with each number of files, on a file system of its own that is alike for all of them."""
    costs = {}
    for count in counts:
        # A transaction has room for all inodes: a writer that waits for a commit lets the flusher run.
        with ext4("-N", str(2 * max(counts)), "-J", "size=64", "-E", "lazy_itable_init=0,lazy_journal_init=0"):
            costs[count] = measure(count)
    return costs


def main() -> int:
    """Measure, print."""
    lines = operations("micro", "micro", "micro_bios")
    for path, value in QUIET.items():
        Path(path).write_text(value)
    overwritten = {block: overwrites(block) for block in BLOCKS}
    traced()
    found: dict[str, Any] = {"core": read("core").strip(), "overwrite": overwritten, "rounds": by_count(round_beside, DIRTY)}
    if found["core"] == "rust":
        with ext4():
            found["look"] = longest_look()
        found["files"] = by_count(files_at_once, FILES)
    # Dropping folios comes last: the memory is in another order after it.
    found["lines"] = lines + operations("micro_drop", "micro_drop")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, subprocess.SubprocessError) as error:
        print(f"micro: {error}", file=sys.stderr)
        sys.exit(1)
