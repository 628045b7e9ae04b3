#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RWF_DONTCACHE leaves nothing in the page cache, wherever a device completes its bios."""

from __future__ import annotations

import functools

from lib import ktap
from lib.devices import Device, brd, linear, loop, null_inline, null_softirq, null_timer, nvme, zram
from lib.dontcache import core
from lib.dropping import known_in_c, left_cached

KINDS = ("bare", "ext4", "xfs")
DEVICES: tuple[Device, ...] = (nvme, null_inline, null_softirq, null_timer, brd, zram, loop, linear)
def nothing_stays(device: Device, kind: str) -> None:
    """No page that was written with DONTCACHE stays in the cache."""
    found = left_cached(device, kind)
    reasons = {known_in_c(device, kind, step, pages) for step, pages in found.items()}
    if found and core() == "c" and all(reasons):
        raise ktap.Skip(f"{'; '.join(sorted(reasons))}; pages left: {found}")
    assert not found, f"pages left: {found}"


if __name__ == "__main__":
    ktap.main(
        "dontcache_devices",
        [
            (f"{device.__name__}_{kind}", functools.partial(nothing_stays, device, kind))
            for device in DEVICES
            for kind in KINDS
            if not (device is brd and kind == "xfs")  # it is too small
        ],
    )
