#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An inode that moves to another cgroup's wb while its pages are dirty."""

from __future__ import annotations

from domain import moved_while_dirty
from exactness import told
from row import Verdict, main, settled_counter, synced_counter


def domain() -> Verdict:
    figures, kept = [], True
    for kind in ("ext4", "xfs"):
        with moved_while_dirty(kind):
            moved = settled_counter()
        end = synced_counter()
        kept &= moved[0] == moved[1] and end[0] == 0
        figures.append(f"{kind} moved {told(moved)}, synced {told(end)}")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(domain)
