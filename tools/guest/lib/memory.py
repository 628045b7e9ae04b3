# SPDX-License-Identifier: GPL-2.0
"""How much memory is in use, for tests that look for lost memory."""

import os
import re
import time
from pathlib import Path


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
    kept = pages * os.sysconf("SC_PAGESIZE") // 1024
    return {"free": kib["MemFree"] + kept, "available": kib["MemAvailable"] + kept, "slab": kib["Slab"]}
