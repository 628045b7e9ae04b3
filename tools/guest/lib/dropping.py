# SPDX-License-Identifier: GPL-2.0
"""Checks how much of what was written with DONTCACHE stays in the page cache."""

import itertools
import os
import random
import time
from collections.abc import Mapping

from lib.devices import Device, brd, target
from lib.dontcache import MIB, RWF_DONTCACHE, cached_pages, counter, forget, until, write_dontcache
from lib.row import KIB, Verdict, of_each

PATIENCE = 2.0
"""Seconds until what is cached still has to be called left, with either core."""

FRESH = (64 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 1234)
"""The lengths of the first writes. Neither their end nor those of the appends are aligned to a block."""
STEPS = {
    "write": (0, FRESH),
    "overwrite": (0, FRESH),
    "append": (sum(FRESH), (100, 70001)),
    "append again": (sum(FRESH) + 70101, (70001,)),
}
"""Where writes begin that follow one another, and their lengths."""


def pages_left(fd: int, length: int, seconds: float) -> int:
    """The cached pages, once there is none or the time is over."""
    deadline = time.monotonic() + seconds
    while (pages := cached_pages(fd, length)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return pages


def read_back(fd: int, content: bytes | bytearray, piece: int) -> int:
    """RWF_DONTCACHE reads find the content on the device; the pages that they leave behind."""
    got = bytearray(len(content))
    for offset in range(0, len(got), piece):
        into = memoryview(got)[offset : offset + piece]
        assert os.preadv(fd, [into], offset, RWF_DONTCACHE) == len(into), f"a short read at {offset}"
    assert got == content, "the device holds something else"
    return pages_left(fd, len(content), PATIENCE)


def left_cached(device: Device, kind: str) -> str:
    """What stays in the cache of the first step that leaves anything, in words.

    New data, the same places again, unaligned appends: each is on the device, and is read back with
    DONTCACHE.
    """
    noise, content = random.Random(7), bytearray()
    with device() as node, target(kind, node) as fd:
        for step, (start, lengths) in STEPS.items():
            for offset, length in zip(itertools.accumulate(lengths, initial=start), lengths, strict=False):
                data = noise.randbytes(length)
                write_dontcache(fd, offset, data)
                content[offset : offset + length] = data
            os.fsync(fd)
            if pages := pages_left(fd, len(content), PATIENCE):
                return f"{pages} pages left of {step}"
            forget(fd, len(content))
            for piece in (64 * KIB, len(content)):
                if pages := read_back(fd, content, piece):
                    return f"{pages} pages left of {step}, read back by {piece // KIB} KiB"
                forget(fd, len(content))
        until(lambda: counter(node) == (0, 0), 5, f"the counter is {counter(node)}")
    return ""


def drop_on(devices: Mapping[str, Device]) -> Verdict:
    """What stays in the cache of writes, overwrites and unaligned appends on each device, bare and with file systems."""
    wrong = {}
    for name, device in devices.items():
        for kind in ("bare", "ext4", "xfs"):
            if device is brd and kind == "xfs":
                continue  # It is too small.
            wrong[f"{kind} on {name}"] = left_cached(device, kind)
    return of_each(wrong)
