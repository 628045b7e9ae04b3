#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""dm-crypt with and without its workqueues, dm-thin, dm-snapshot, raid1, raid5, and a loop device on each file system"""

from __future__ import annotations

from lib.devices import STACKS, loop
from lib.dropping import left_cached
from lib.row import Verdict, main

KINDS = ("bare", "xfs", "ext4")


def stacks() -> Verdict:
    """New data, overwrites and appends on each, bare and with file systems."""
    left = {
        f"{name}, {kind}": found
        for name, device in (STACKS | {"loop": loop}).items()
        for kind in KINDS
        if (found := left_cached(device, kind))
    }
    figures = "; ".join(f"{where}: {steps}" for where, steps in left.items())
    return Verdict(not left, figures or f"{len(STACKS) + 1} devices")


if __name__ == "__main__":
    main(stacks, breaks_c=True, stacks=True)
