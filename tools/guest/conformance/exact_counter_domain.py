#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An inode moves to the wb of another cgroup while its pages are dirty."""

from lib.domain import moved_while_dirty
from lib.exactness import exact, told
from lib.row import NOTHING, Verdict, held_counter, main, synced_counter, tried


def domain() -> Verdict:
    figures, kept = [], True
    for kind in ("ext4", "xfs"):
        with moved_while_dirty(kind):
            moved = held_counter()
        end = synced_counter()
        kept &= exact(moved) and end == NOTHING
        tried(not kept or moved[1], f"dirty pages of an inode that has moved: {told(moved)}")
        figures.append(f"{kind} moved {told(moved)}, synced {told(end)}")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(domain)
