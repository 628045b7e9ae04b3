# SPDX-License-Identifier: GPL-2.0
"""fdatasync of DONTCACHE writes while a real-time task occupies the CPU of the drive's interrupts."""

import contextlib
import os
import re
import signal
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from lib.dontcache import KIB, NVME, RWF_DONTCACHE, file_system, forked, opened, setting, write_pieces
from lib.row import Verdict, main

WRITES = 100
PIECE = 4 * KIB
PIECES = (1, 32)
"""A bio of one folio ends in its interrupt, one of many in a task."""
SIZE = PIECE * max(PIECES)
BURST = 0.2
"""How long the real-time task runs at once, in seconds. A completion that waits for it is late."""

LATE = 0.005
"""In seconds: what a wait that no task has held up is below."""

ROUNDS = 7
"""All of them count: it is the middle one that is judged. A busy host holds up a CPU of the guest for some
milliseconds in every other round, for buffered writes as well; a worker that waits for the real-time task is
late in each round."""


def interrupt_cpu() -> int:
    """The CPU that the drive's one queue interrupts, made to complete there."""
    Path(f"/sys/block/{Path(NVME).name}/queue/rq_affinity").write_text("0")
    controller = re.sub(r"n\d+$", "", Path(NVME).name)
    line = re.search(rf"^ *(\d+):.*{controller}q1$", Path("/proc/interrupts").read_text(), re.M)
    assert line, f"{controller} has no queue with an interrupt"
    return int(Path(f"/proc/irq/{line[1]}/effective_affinity_list").read_text())


@contextlib.contextmanager
def busy(cpu: int, *, real_time: bool) -> Iterator[None]:
    """Keeps the CPU busy: all the time, or in bursts that no ordinary task interrupts."""

    def spin() -> None:
        os.sched_setaffinity(0, {cpu})
        if real_time:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        while True:
            end = time.monotonic() + BURST
            while time.monotonic() < end:
                pass
            if real_time:
                time.sleep(0.001)

    child = forked(spin)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def wait(fd: int, start: int, size: int, flags: int) -> float:
    """How long fdatasync takes after an overwrite, in seconds."""
    write_pieces(fd, size, PIECE, flags, start)
    begin = time.monotonic()
    os.fdatasync(fd)
    return time.monotonic() - begin


def longest_waits(fd: int) -> tuple[float, float]:
    """The longest fdatasync of many after DONTCACHE writes, and after buffered ones, in seconds.

    They take turns, so that what holds up the guest holds up both.
    """
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    dontcache, buffered = [], []
    for number in range(WRITES):
        start, size = 2 * number * SIZE, PIECES[number % len(PIECES)] * PIECE
        buffered.append(wait(fd, start, size, 0))
        dontcache.append(wait(fd, start + SIZE, size, RWF_DONTCACHE))
    return max(dontcache), max(buffered)


def busy_cpu() -> Verdict:
    """A real-time and an ordinary task have the CPU that the interrupts come to. The worker has one other CPU.

    With more, the guest has more busy CPUs than a small host, and a CPU that wakes waits for the host: DONTCACHE wakes
    one more than buffered writes do, for the worker.
    """
    cpu, everywhere = interrupt_cpu(), os.sched_getaffinity(0)
    other = min(everywhere - {cpu})
    with file_system("xfs") as root, opened(root / "file") as fd, contextlib.ExitStack() as offline:
        for number in everywhere - {cpu, other}:
            offline.enter_context(setting(Path(f"/sys/devices/system/cpu/cpu{number}/online"), 0))
        os.pwrite(fd, bytes(2 * WRITES * SIZE), 0)
        os.fsync(fd)
        os.sched_setaffinity(0, {other})
        with busy(cpu, real_time=False), busy(cpu, real_time=True):
            rounds = [longest_waits(fd) for _ in range(ROUNDS)]
    dontcache, buffered = (statistics.median(waits) for waits in zip(*rounds, strict=True))
    figures = f"the longest of 100, the median of {ROUNDS} times: {dontcache * 1000:.1f} ms, buffered {buffered * 1000:.1f} ms"
    # Nobody has waited for the real-time task.
    return Verdict(dontcache < max(LATE, 3 * buffered), figures)


main(busy_cpu, breaks_c=True)
