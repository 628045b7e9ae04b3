# SPDX-License-Identifier: GPL-2.0
"""A file system is unmounted with dirty pages, and files with dirty pages are deleted."""

from lib.dontcache import NVME, core, file_system, flusher_held, held, opened
from lib.row import NOTHING, Verdict, dirty, exact, held_counter, main, on_each, quiet_counter, synced_counter, told, tried


def unmount(kind: str) -> Verdict:
    with file_system(kind) as root, held(), flusher_held():
        for name in ("stays", "goes"):
            with opened(root / name) as fd:
                dirty(fd)
        before = held_counter()
        (root / "goes").unlink()
        unlinked = held_counter()
    # The device outlives the file system, and its counter with it.
    after, end = quiet_counter(NVME), synced_counter()
    kept = exact(before) and exact(unlinked) and after == end == NOTHING
    deleted = unlinked[1] < before[1] and (unlinked[1] or core() == "c")
    tried(not kept or deleted, f"dirty pages that are deleted beside others: {told(before)}, {told(unlinked)}")
    return Verdict(kept, f"{told(before)}, unlinked {told(unlinked)}, unmounted {told(after)}")


main(lambda: on_each(unmount))
