# SPDX-License-Identifier: GPL-2.0
"""An isolated CPU: a task that keeps it busy does not delay drops, and no worker of another CPU's writer runs on it"""

import os
import time
from functools import partial
from pathlib import Path

from lib.devices import Device, brd, null_inline, null_softirq, nvme, target
from lib.dontcache import KIB, MIB, RWF_DONTCACHE, beside, cached_pages, file_system, for_a_while, opened, setting, write_pieces
from lib.row import BOUND, Verdict, main, nothing_left, tried

CPU = Path("/sys/devices/system/cpu/isolated")
DEVICES: dict[str, Device] = {"brd": brd, "null_blk": null_inline, "null_blk in softirq": null_softirq, "nvme": nvme}
SIZE, PIECE = MIB, 64 * KIB
SECONDS = 2.0
MORE = 2
"""Interruptions of a task that may be anybody's."""


def write_and_stay(fd: int, cpu: int, note: Path) -> None:
    """Writes to the file on that CPU, and does not let go of it until nothing is cached."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    write_pieces(fd, SIZE, PIECE)
    os.fsync(fd)
    deadline = time.monotonic() + BOUND
    while (pages := cached_pages(fd)) and time.monotonic() < deadline:
        pass
    note.write_text(str(pages))


def interruptions(path: Path, flags: int, cpu: int, note: Path) -> int:
    """How often a task on that CPU lost it, while another one wrote elsewhere."""

    def stay() -> None:
        os.sched_setaffinity(0, {cpu})
        for _ in for_a_while(SECONDS):
            pass
        note.write_text(Path("/proc/self/status").read_text().split("nonvoluntary_ctxt_switches:")[1])

    with beside(stay), opened(path) as fd:
        for _ in for_a_while(SECONDS):
            write_pieces(fd, 8 * MIB, PIECE, flags)
            os.fdatasync(fd)
    return int(note.read_text())


def isolated() -> Verdict:
    tried(CPU.read_text().strip(), "an isolated CPU")
    cpu, note = int(CPU.read_text()), Path("/tmp/note")
    # Else ordinary tasks have a twentieth of each second, however many real-time ones there are.
    share = Path(f"/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime")
    left = {}
    for name, device in DEVICES.items():
        with setting(share, 0), device() as node, target("bare", node) as fd:
            with beside(partial(write_and_stay, fd, cpu, note)):
                pass
            left[name] = int(note.read_text())
    with file_system("xfs") as root:
        buffered, dontcache = (interruptions(root / "file", flags, cpu, note) for flags in (0, RWF_DONTCACHE))
    kept, figures, _ = nothing_left(left)
    figures += f"; a task lost its CPU {dontcache} times, beside a buffered writer {buffered} times"
    return Verdict(kept and dontcache <= buffered + MORE, figures)


main(isolated, breaks_c=True, stacks=True)
