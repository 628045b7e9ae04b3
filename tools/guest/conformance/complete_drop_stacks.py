#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""dm-crypt with and without workqueues, dm-thin, dm-snapshot, raid1, raid5 and loop, bare and with file systems"""

from __future__ import annotations

from lib.devices import STACKS, loop
from lib.dropping import left_cached
from lib.row import Verdict, main, of_each

KINDS = ("bare", "xfs", "ext4")


def stacks() -> Verdict:
    """New data, overwrites and appends on each, bare and with file systems."""
    wrong: dict[str, str] = {}
    for name, device in (STACKS | {"loop": loop}).items():
        for kind in KINDS:
            left = left_cached(device, kind)
            wrong[f"{kind} on {name}"] = ", ".join(f"{pages} pages left of {step}" for step, pages in left.items())
    return of_each(wrong)


if __name__ == "__main__":
    main(stacks, breaks_c=True, stacks=True)
