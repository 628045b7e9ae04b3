# SPDX-License-Identifier: GPL-2.0
"""Run the cells of `make price` inside the guest, in the order of the plan.

The plan is a JSON array of cells on the command line. Each cell gets a fresh file system on the
drive of the guest's own memory, and /share/price runs its load between the marks of the plugin. On
stdout, when all is done: a JSON line with the active core and the MiB of available memory, then one
for each cell, with the number of writes and of the pages that are cached in the end. Output that
leaves the guest earlier would be interrupts at times that depend on the host.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CORE = "/sys/kernel/debug/rust_writeback/core"
NULL_BLK = Path("/sys/kernel/config/nullb/price")
DEVICE = "/dev/price"
DRIVE_MIB = 448
MOUNT = Path("/tmp/mnt")
UUID = "52555354-5752-4954-4542-41434b000001"

DRIVE = {
    "size": DRIVE_MIB,
    "blocksize": 4096,
    "memory_backed": 1,
    # It completes in the interrupt of a timer, after 20 us, and never by polling.
    "irqmode": 2,
    "completion_nsec": 20_000,
    "poll_queues": 0,
}
MKFS = {
    "xfs": ["mkfs.xfs", "-f", "-q", "-K", "-m", f"uuid={UUID}"],
    "ext4": ["mkfs.ext4", "-F", "-q", "-U", UUID, "-E", f"hash_seed={UUID},lazy_itable_init=0,nodiscard"],
}
"""Nothing is left to a thread that writes it beside the load, and the drive keeps its memory."""
OPTIONS = {"xfs": "defaults", "ext4": "no_prefetch_block_bitmaps"}
"""A thread of ext4 reads its bitmaps after a random time. Where a file is allocated depends on which have been read."""

FRACTION = Path("/proc/sys/vm/percpu_pagelist_high_fraction")
"""One part in so many of the memory may be in the lists of the CPUs. With 0 the kernel decides."""

SETTLE = 2.0
"""Seconds in which the last work of before is done: the statistics are updated every second."""

QUIET = {
    # The kernel threads that run whenever it suits them.
    "/proc/sys/vm/dirty_writeback_centisecs": "0",
    "/proc/sys/vm/stat_interval": "100000",
    "/proc/sys/vm/compaction_proactiveness": "0",
    "/proc/sys/vm/extfrag_threshold": "1000",
}


def run(*command: object) -> None:
    """Run a command that has to succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(map(str, command))}: {(done.stdout + done.stderr).strip()[-300:]}")


def copy(target: Path | str, mib: int, flags: str) -> None:
    """Write so many MiB to the start of a file or device."""
    run("dd", "if=/dev/zero", f"of={target}", "bs=1M", f"count={mib}", f"oflag={flags}", "conv=notrunc")


def forget() -> None:
    """Drop all that is clean and cached, and put the free memory together."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    # Pages in the lists of a CPU keep their neighbours apart. While the lists may hold little, they are short.
    FRACTION.write_text("1000000")
    run("true")
    Path("/proc/sys/vm/compact_memory").write_text("1")
    run("true")
    FRACTION.write_text("0")
    # What kernel threads still have to do is done in this time, which costs no time of the host.
    time.sleep(SETTLE)


@contextlib.contextmanager
def drive() -> Iterator[None]:
    """The drive, all of whose memory is allocated."""
    NULL_BLK.mkdir()
    for name, value in DRIVE.items():
        (NULL_BLK / name).write_text(str(value))
    (NULL_BLK / "power").write_text("1")
    copy(DEVICE, DRIVE_MIB, "direct")
    yield
    (NULL_BLK / "power").write_text("0")
    NULL_BLK.rmdir()


def available() -> int:
    """MiB of memory that the page cache can have."""
    forget()
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) >> 10


@contextlib.contextmanager
def place(kind: str) -> Iterator[str]:
    """Where a load writes to: the name of its file, or of the device."""
    if kind == "device":
        # Whoever closes a device last takes its pages out of the cache.
        descriptor = os.open(DEVICE, os.O_RDONLY)
        yield DEVICE
        os.close(descriptor)
        return
    file_system, *options = kind.split()
    run(*MKFS[file_system], DEVICE)
    MOUNT.mkdir(exist_ok=True)
    run("mount", "-t", file_system, "-o", ",".join((OPTIONS[file_system], *options)), DEVICE, MOUNT)
    yield str(MOUNT / "file")
    run("umount", MOUNT)


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    """Run one cell."""
    with place(cell["place"]) as file:
        mib = cell["bytes"] >> 20
        if cell["before"] == "disk":
            copy(file, mib, "direct")
        forget()
        if cell["before"] == "cached":
            copy(file, mib, "append" if cell["place"] != "device" else "nonblock")
            os.sync()
        command = ["/share/price", file, cell["mode"], cell["order"], str(cell["size"]), str(cell["bytes"]), "1"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"error: {cell['name']}: {done.stderr.strip()}")
        writes, pages = (int(word) for word in done.stdout.split())
    return {"name": cell["name"], "writes": writes, "pages": pages}


def main() -> None:
    """Measure, and print."""
    cells = json.loads(sys.argv[1])
    for path, value in QUIET.items():
        Path(path).write_text(value)
    with drive():
        said: list[dict[str, Any]] = [{"core": Path(CORE).read_text().strip(), "available": available()}]
        said += [measure(cell) for cell in cells]
    print("".join(f"{json.dumps(line)}\n" for line in said), end="")


if __name__ == "__main__":
    main()
