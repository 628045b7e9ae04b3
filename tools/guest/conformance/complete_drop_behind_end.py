#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The block in which a file ends is zeroed: dirty, on the drive, a hole, for a write behind it or a truncation."""

from __future__ import annotations

import os

from lib.dontcache import MIB, NVME, file_system, opened, write_dontcache
from lib.dropping import pages_left
from lib.row import KIB, Verdict, main

END, BEHIND = 1234, 100_000
"""Neither is aligned to a block."""
SECONDS = 2


def behind_end() -> Verdict:
    left = {}
    for kind, *options in (("ext4",), ("ext4", "-b", KIB), ("xfs",)):
        with file_system(kind, NVME, *options) as root:
            for name in ("dirty", "on the drive", "a hole"):
                with opened(root / name) as fd:
                    if name == "a hole":
                        os.ftruncate(fd, END)
                    else:
                        write_dontcache(fd, 0, bytes(END))
                    if name == "on the drive":
                        os.fsync(fd)
                    write_dontcache(fd, BEHIND, bytes(END))
                    os.fsync(fd)
                    left[" ".join(map(str, (kind, *options, name)))] = pages_left(fd, MIB, SECONDS)
            with opened(root / "truncated") as fd:
                write_dontcache(fd, 0, bytes(BEHIND))
                os.ftruncate(fd, END)
                os.fsync(fd)
                left[" ".join(map(str, (kind, *options, "truncated")))] = pages_left(fd, MIB, SECONDS)
    figures = ", ".join(f"{case} {pages}" for case, pages in left.items())
    return Verdict(not any(left.values()), f"pages left: {figures}")


if __name__ == "__main__":
    main(behind_end, breaks_c=True)
