# SPDX-License-Identifier: GPL-2.0
"""Run the loads of `make price CPUS=...` inside the guest: a writer on each CPU, in several repetitions.

The plan is a JSON object on the command line. /share has this file, price.py, whose drive and file
systems are used, and the load. On stdout: a JSON line with the active core, then a line for each region
that the plugin counts, in the order of the regions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import price

LOAD = "/share/price"
FILE_SYSTEM = "xfs lazytime"
"""The guest is slow, and its clock is the host's: otherwise nearly each write would log a new time of the file."""
SETTLE = 0.1
"""Seconds: the clock is that of the host, and what kernel threads do beside a load is in its interval."""
IO_TIMEOUT = Path("/sys/block/price/queue/io_timeout")
"""Milliseconds. On a busy host a CPU of the guest may wait for longer than the 30 seconds that are the default."""
BACKGROUND = Path("/proc/sys/vm/dirty_background_bytes")
BACKGROUND_RATIO = Path("/proc/sys/vm/dirty_background_ratio")
EARLY = 1 << 20
"""Dirty bytes above which the flusher writes, in the mode of this name."""


def set_background(mode: str) -> None:
    """Have the flusher write early, or when the kernel would."""
    if mode == "early":
        BACKGROUND.write_text(str(EARLY))
    else:
        BACKGROUND_RATIO.write_text("10")


def measure(plan: dict[str, Any], place: str, mode: str) -> dict[str, Any]:
    """Run one load on a fresh file system, or on the device with an empty cache."""
    with price.place("device" if place == "device" else FILE_SYSTEM) as target:
        price.forget()
        set_background(mode)
        file = f"{target}%d" if place == "separate" else target
        way = "buffered" if mode == "early" else mode
        command = [LOAD, file, way, "row", *(str(plan[key]) for key in ("size", "bytes", "cpus"))]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"error: {place}, {mode}: {done.stderr.strip()}")
        writes, pages = (int(word) for word in done.stdout.split())
    return {"place": place, "mode": mode, "writes": writes, "pages": pages}


def main() -> None:
    """Measure, and print."""
    plan = json.loads(sys.argv[1])
    if os.cpu_count() != plan["cpus"]:
        raise SystemExit(f"error: the guest has {os.cpu_count()} CPUs, not {plan['cpus']}")
    for path, value in price.QUIET.items():
        Path(path).write_text(value)
    price.SETTLE = SETTLE
    # Otherwise all CPUs would share the lock of one queue of the drive.
    price.DRIVE["submit_queues"] = plan["cpus"]
    with price.drive():
        IO_TIMEOUT.write_text("600000")
        print(json.dumps({"core": Path(price.CORE).read_text().strip()}), flush=True)
        for repetition in range(plan["repetitions"]):
            for place in plan["places"]:
                for mode in plan["modes"]:
                    print(json.dumps({"repetition": repetition, **measure(plan, place, mode)}), flush=True)


if __name__ == "__main__":
    main()
