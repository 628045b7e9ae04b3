# SPDX-License-Identifier: GPL-2.0
"""What the rows of the complete drop share."""

from __future__ import annotations

from lib.devices import Device
from lib.row import Verdict
from test_dontcache_devices import left_cached


def drop_on(device: Device, *kinds: str) -> Verdict:
    """What stays in the cache of writes, overwrites and unaligned appends."""
    left = {kind: left_cached(device, kind) for kind in kinds}
    words = {kind: ", ".join(f"{step} {pages}" for step, pages in found.items()) for kind, found in left.items()}
    figures = "; ".join(f"{kind} {text or 'none'}" for kind, text in words.items())
    return Verdict(not any(left.values()), f"pages left: {figures}")
