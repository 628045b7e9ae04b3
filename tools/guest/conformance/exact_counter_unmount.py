#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A file system that is unmounted with dirty pages, and files that are deleted with them."""

from __future__ import annotations

from dontcache import NVME, counter, file_system, flusher_held, opened
from exactness import dirty, told
from row import Verdict, main, quiet_counter, settled_counter, synced_counter, tried


def unmount() -> Verdict:
    figures, kept = [], True
    for kind in ("ext4", "xfs"):
        with file_system(kind) as root, flusher_held():
            for name in ("stays", "goes"):
                with opened(root / name) as fd:
                    dirty(fd)
            before = counter()
            (root / "goes").unlink()
            unlinked = settled_counter()
            tried(unlinked[1] < before[1], f"dirty pages that are deleted: {told(before)}, {told(unlinked)}")
        # The device outlives the file system, and its counter with it.
        after, end = quiet_counter(NVME), synced_counter()
        kept &= unlinked[0] == unlinked[1] and after == (0, 0) == end
        figures.append(f"{kind} {told(before)}, unlinked {told(unlinked)}, unmounted {told(after)}")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(unmount)
