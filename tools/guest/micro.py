# SPDX-License-Identifier: GPL-2.0
"""Run the micro-benchmarks inside the guest and hand on what they say.

The kernel's works on a real inode: a file descriptor's number, written to the
file "micro", names one of the writer's own files. It is dirtied first, for an
inode that was never dirtied has no writeback domain to count in. The program
/overwrite works on a fresh ext4 for each block size. On stdout: one JSON object
with the core, the kernel's lines "OP INSTRUCTIONS", and the program's by block size.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator

DEBUGFS = "/sys/kernel/debug/rust_writeback"
DIRECTORY = "/tmp/micro"
BLOCKS = (4096, 1024)
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
    with open(f"{DEBUGFS}/{name}", encoding="ascii") as file:
        return file.read()


@contextlib.contextmanager
def ext4(*options: str) -> Iterator[None]:
    """A fresh ext4 on the device, mounted as it is by default."""
    os.makedirs(DIRECTORY, exist_ok=True)
    subprocess.run(["mkfs.ext4", "-F", "-q", *options, DEVICE], check=True, stdout=sys.stderr)
    subprocess.run(["mount", "-t", "ext4", DEVICE, DIRECTORY], check=True)
    yield
    subprocess.run(["umount", DIRECTORY], check=True)


def operations() -> list[str]:
    """Let the kernel measure on a file."""
    with ext4(), open(f"{DIRECTORY}/file", "w+b") as file:
        file.write(bytes(1 << 20))
        file.flush()
        with open(f"{DEBUGFS}/micro", "w", encoding="ascii") as micro:
            micro.write(str(file.fileno()))
    return read("micro").splitlines() + read("micro_bios").splitlines()


def overwrites(block: int) -> list[str]:
    """Overwrite files on an ext4 with such blocks."""
    # All is initialised at once: nothing is left for a thread of the kernel.
    with ext4("-b", str(block), "-E", "lazy_itable_init=0,lazy_journal_init=0"):
        result = subprocess.run(["/overwrite", DIRECTORY], check=True, stdout=subprocess.PIPE, text=True)
    return result.stdout.splitlines()


def main() -> int:
    """Measure, print."""
    lines = operations()
    for path, value in QUIET.items():
        with open(path, "w", encoding="ascii") as file:
            file.write(value)
    overwritten = {block: overwrites(block) for block in BLOCKS}
    print(json.dumps({"core": read("core").strip(), "lines": lines, "overwrite": overwritten}))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, subprocess.SubprocessError) as error:
        print(f"micro: {error}", file=sys.stderr)
        sys.exit(1)
