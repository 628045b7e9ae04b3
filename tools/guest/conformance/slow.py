# SPDX-License-Identifier: GPL-2.0
"""A slow drive, whose flusher can be kept busy for long."""

from __future__ import annotations

from contextlib import AbstractContextManager

from devices import TIMER
from dontcache import MIB
from row import KIB
from walk import SECTOR, NullBlock

SPEED = 32 * MIB
"""Bytes a second."""
REQUEST = 256 * KIB
DISK_MIB = 1024
"""So much that no file system begins to write by itself, for fear of having no space."""


def slow_drive() -> AbstractContextManager[NullBlock]:
    """One request at a time, each of which takes as long as it does at that speed."""
    nanoseconds = 10**9 * REQUEST // SPEED
    return NullBlock(
        DISK_MIB, SECTOR, irqmode=TIMER, completion_nsec=nanoseconds, poll_queues=0, submit_queues=1, hw_queue_depth=1,
        max_sectors=REQUEST // SECTOR,
    )  # fmt: skip
