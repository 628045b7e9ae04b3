# SPDX-License-Identifier: GPL-2.0
"""A device with dirty pages is discarded, zeroed or shrunk, or gets another block size."""

import os
from collections.abc import Callable

from lib.devices import DISK_MIB, loop, nvme
from lib.dontcache import MIB, PAGE, counter, held, opened, run, write_dontcache
from lib.row import NOTHING, Verdict, exact, main, synced_counter, told, tried

LENGTH = 4 * MIB
START = DISK_MIB * MIB // 2


def shrink(device: str) -> None:
    os.truncate("/tmp/backing", START + LENGTH // 2)
    run("losetup", "--set-capacity", device)


CUTS: dict[str, Callable[[str], object]] = {
    "discarded": lambda device: run("blkdiscard", "--force", device),
    "zeroed": lambda device: run("blkdiscard", "--force", "--zeroout", device),
    "512-byte blocks": lambda device: run("blockdev", "--setbsz", 512, device),
    "shrunk": shrink,
}


def cut_off() -> Verdict:
    figures, kept = [], True
    for name, cut in CUTS.items():
        with (loop if name == "shrunk" else nvme)() as device:
            with opened(device, os.O_RDWR) as fd:
                with held():
                    write_dontcache(fd, START, os.urandom(LENGTH))
                    before = counter(device)
                    cut(device)
                    after = counter(device)
                tried(before[1] == LENGTH // PAGE, f"dirty pages: {told(before)}")
                kept &= exact(after)
            synced = synced_counter(device)
            kept &= synced == NOTHING
            figures.append(f"{name} {told(after)}, synced {told(synced)}")
    return Verdict(kept, "; ".join(figures))


main(cut_off)
