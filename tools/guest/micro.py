# SPDX-License-Identifier: GPL-2.0
"""Run the kernel's micro-benchmark inside the guest and hand on what it says.

The benchmark works on a real inode: a file descriptor's number, written to the
file "micro", names one of the writer's own files. It is dirtied first, for an
inode that was never dirtied has no writeback domain to count in. On stdout: one
JSON object with the core and the lines "OP INSTRUCTIONS".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

DEBUGFS = "/sys/kernel/debug/rust_writeback"
DIRECTORY = "/tmp/micro"


def read(name: str) -> str:
    """One of our debugfs files."""
    with open(f"{DEBUGFS}/{name}", encoding="ascii") as file:
        return file.read()


def main() -> int:
    """Make a file on ext4, let the kernel measure on it, print."""
    device = os.environ["NVME"]
    os.makedirs(DIRECTORY, exist_ok=True)
    subprocess.run(["mkfs.ext4", "-F", "-q", device], check=True, stdout=sys.stderr)
    subprocess.run(["mount", "-t", "ext4", device, DIRECTORY], check=True)
    with open(f"{DIRECTORY}/file", "w+b") as file:
        file.write(bytes(1 << 20))
        file.flush()
        with open(f"{DEBUGFS}/micro", "w", encoding="ascii") as micro:
            micro.write(str(file.fileno()))
    print(json.dumps({"core": read("core").strip(), "lines": read("micro").splitlines()}))
    subprocess.run(["umount", DIRECTORY], check=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, KeyError, subprocess.SubprocessError) as error:
        print(f"micro: {error}", file=sys.stderr)
        sys.exit(1)
