# SPDX-License-Identifier: GPL-2.0
"""A drive in the memory of the guest, which answers a request after a fixed time."""

import os
import subprocess

from .kernel import Refused, read, write

FOLDER = "/sys/kernel/config/nullb"
NAME = "drive"


def make(megabytes: int, nanoseconds: int) -> str:
    """The drive as a block device, all of whose memory it has already."""
    settings = {
        "size": megabytes,
        "memory_backed": 1,
        # A volatile cache: flushes come, and take as long as any request. It stays empty, because a write goes to the
        # memory of the drive where there is any.
        "cache_size": 1,
        "irqmode": 2,
        "completion_nsec": nanoseconds,
        "submit_queues": 1,
        "hw_queue_depth": 1023,
        "max_sectors": 1024,
        "power": 1,
    }
    try:
        os.mkdir(f"{FOLDER}/{NAME}")
        for name, value in settings.items():
            write(f"{FOLDER}/{NAME}/{name}", str(value))
    except OSError as error:
        raise Refused(f"null_blk makes no drive: {error}") from None
    device = f"/dev/{NAME}"
    # A page takes memory when it is first written, which is not to happen under a load.
    fill = ["dd", "if=/dev/zero", f"of={device}", "bs=1M", f"count={megabytes}", "status=none"]
    fill += ["oflag=direct", "conv=fsync"]
    done = subprocess.run(fill, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"the drive cannot be filled: {' '.join(done.stderr.split())[-300:]}")
    forget_memory()
    return device


def forget_memory() -> None:
    """Have the kernel limit dirty pages by the memory that is left now.

    It keeps a limit from the time of its boot, and lowers that by a 32nd at a time:
    until then writers would fill all memory. A ratio that changes sets it anew.
    """
    path = "/proc/sys/vm/dirty_ratio"
    ratio = int(read(path))
    for value in (ratio + 1, ratio):
        write(path, str(value))
