# SPDX-License-Identifier: GPL-2.0
"""When the flusher writes by itself: settings below /proc/sys/vm for as long as a row wants them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from dontcache import MIB

VM = Path("/proc/sys/vm")


def _in_force(name: str) -> Path:
    """The file that holds the setting: a limit is either in bytes or in percent, and the other file says 0."""
    file = VM / name
    if name.endswith("_bytes") and file.read_text() == "0\n":
        return VM / name.replace("_bytes", "_ratio")
    return file


@contextlib.contextmanager
def knobs(**values: int) -> Iterator[None]:
    """Sets these, and puts back what was there."""
    before = {file: file.read_text() for file in map(_in_force, values)}
    try:
        for name, value in values.items():
            (VM / name).write_text(str(value))
        yield
    finally:
        for file, text in before.items():
            file.write_text(text)


def never_periodic() -> contextlib.AbstractContextManager[None]:
    """Nothing is written because it is old."""
    return knobs(dirty_writeback_centisecs=0)


def never_many() -> contextlib.AbstractContextManager[None]:
    """Nothing is written because there is much of it: the limits are above all that a row writes."""
    return knobs(dirty_bytes=1536 * MIB, dirty_background_bytes=1024 * MIB)
