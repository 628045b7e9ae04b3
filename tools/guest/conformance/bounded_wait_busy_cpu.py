#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""fdatasync of DONTCACHE writes while a real-time task occupies the CPU of the drive's interrupts."""

from __future__ import annotations

from lib.latency import ROUNDS, in_time, told, waits_beside_busy_tasks
from lib.row import Verdict, main


def busy_cpu() -> Verdict:
    dontcache, buffered = waits_beside_busy_tasks()
    return Verdict(in_time(dontcache, buffered), f"the longest of 100, the median of {ROUNDS} times: {told(dontcache, buffered)}")


if __name__ == "__main__":
    main(busy_cpu, breaks_c=True)
