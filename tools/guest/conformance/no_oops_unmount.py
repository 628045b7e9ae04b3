#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A file system that is unmounted with dirty DONTCACHE pages, lazily while writers run."""

from __future__ import annotations

import os

from devices import null_timer
from dontcache import MIB, MKFS, MOUNT, opened, pattern, run, write_dontcache
from row import SHORT, Verdict, main, tried

ROUNDS = 3 if SHORT else 10


def unmount() -> Verdict:
    wrong, lazily = 0, 0
    MOUNT.mkdir(exist_ok=True)
    with null_timer() as node:
        for kind in ("ext4", "xfs"):
            run(*MKFS[kind], node)
            for number in range(ROUNDS):
                run("mount", "-t", kind, node, MOUNT)
                with opened(MOUNT / "file") as fd:
                    write_dontcache(fd, 0, pattern(0, MIB))
                    if number % 2:
                        run("umount", "--lazy", MOUNT)
                        lazily += 1
                        write_dontcache(fd, MIB, pattern(MIB, MIB))
                if not number % 2:
                    run("umount", MOUNT)
                run("mount", "-t", kind, node, MOUNT)
                wrong += (MOUNT / "file").read_bytes()[:MIB] != pattern(0, MIB)
                run("umount", MOUNT)
    tried(lazily, "a lazy unmount")
    return Verdict(wrong == 0, f"{2 * ROUNDS} unmounts, {lazily} lazy; {wrong} files differ")


if __name__ == "__main__":
    main(unmount)
