#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""How long fdatasync waits for DONTCACHE pages while the CPU of the drive's interrupts is busy."""

from __future__ import annotations

from lib import ktap
from lib.dontcache import core
from lib.latency import LATE, in_time, told, waits_beside_busy_tasks


def beside_busy_tasks() -> None:
    """A writer of DONTCACHE pages does not wait for the tasks that have the CPU of the interrupts."""
    dontcache, buffered = waits_beside_busy_tasks()
    if core() == "c" and dontcache > LATE:
        raise ktap.Skip(f"the C core's worker waits for the real-time task: {told(dontcache, buffered)}")
    assert in_time(dontcache, buffered), told(dontcache, buffered)


if __name__ == "__main__":
    ktap.main("dontcache_latency", [("beside_busy_tasks", beside_busy_tasks)])
