# SPDX-License-Identifier: GPL-2.0
"""When the flusher writes by itself: settings below /proc/sys/vm for as long as a row wants them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from dontcache import MIB

VM = Path("/proc/sys/vm")


@contextlib.contextmanager
def knobs(**values: int) -> Iterator[None]:
    """Sets these, and puts back what was there."""
    before = {name: (VM / name).read_text() for name in values}
    try:
        for name, value in values.items():
            (VM / name).write_text(str(value))
        yield
    finally:
        for name, text in before.items():
            # A limit in bytes that is 0 is not in force: its ratio was, and comes back by being set.
            ratio = VM / name.replace("_bytes", "_ratio")
            if name.endswith("_bytes") and text.strip() == "0":
                ratio.write_text({"dirty_ratio": "20", "dirty_background_ratio": "10"}[ratio.name])
            else:
                (VM / name).write_text(text)


def never_periodic() -> contextlib.AbstractContextManager[None]:
    """Nothing is written because it is old."""
    return knobs(dirty_writeback_centisecs=0)


def never_many() -> contextlib.AbstractContextManager[None]:
    """Nothing is written because there is much of it: the limits are above all that a row writes."""
    return knobs(dirty_bytes=1536 * MIB, dirty_background_bytes=1024 * MIB)
