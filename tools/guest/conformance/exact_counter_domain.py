# SPDX-License-Identifier: GPL-2.0
"""An inode moves to the wb of another cgroup while its pages are dirty."""

from lib.domain import moved_while_dirty
from lib.row import NOTHING, Verdict, exact, held_counter, main, on_each, synced_counter, told, tried


def domain(kind: str) -> Verdict:
    with moved_while_dirty(kind):
        moved = held_counter()
    end = synced_counter()
    kept = exact(moved) and end == NOTHING
    tried(not kept or moved[1], f"dirty pages of an inode that has moved: {told(moved)}")
    return Verdict(kept, f"moved {told(moved)}, synced {told(end)}")


main(lambda: on_each(domain))
