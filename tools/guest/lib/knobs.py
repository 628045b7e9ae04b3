# SPDX-License-Identifier: GPL-2.0
"""Changes settings while a row runs, such as those of /proc/sys/vm that control when the flusher writes by itself."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from lib.dontcache import MIB, setting

VM = Path("/proc/sys/vm")


def _in_force(name: str) -> Path:
    """The file that holds the setting: a limit is either in bytes or in percent, and the other file says 0."""
    file = VM / name
    if name.endswith("_bytes") and file.read_text() == "0\n":
        return VM / name.replace("_bytes", "_ratio")
    return file


@contextlib.contextmanager
def knobs(**values: int) -> Iterator[None]:
    """Sets these below /proc/sys/vm."""
    with contextlib.ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(setting(VM / name, value, _in_force(name)))
        yield


def never_periodic() -> contextlib.AbstractContextManager[None]:
    """Nothing is written because it is old."""
    return knobs(dirty_writeback_centisecs=0)


def never_many() -> contextlib.AbstractContextManager[None]:
    """Nothing is written because there is much of it: the limits are above all that a row writes."""
    return knobs(dirty_bytes=1536 * MIB, dirty_background_bytes=1024 * MIB)
