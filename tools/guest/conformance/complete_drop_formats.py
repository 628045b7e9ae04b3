#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""xfs and ext4 with blocks of 1 to 64 KiB, and with features that change how data gets to its blocks."""

from __future__ import annotations

import fcntl
import os
import random
from pathlib import Path

from lib.dontcache import MIB, NVME, counter, file_system, opened, run, until, write_dontcache
from lib.dropping import pages_left
from lib.row import KIB, NOTHING, Verdict, main

SECONDS = 1
"""Until nothing of what is durable may be cached."""

FORMATS: dict[str, tuple[str, tuple[str, ...], str]] = {
    **{f"xfs {size}k": ("xfs", ("-b", f"size={size}k"), "rw") for size in (1, 2, 4, 8, 16, 64)},
    **{f"ext4 {size}k": ("ext4", ("-b", str(size * KIB)), "rw") for size in (1, 2, 4, 16, 64)},
    "xfs extents of 64k": ("xfs", ("-d", "extszinherit=16"), "rw"),
    "ext4 bigalloc": ("ext4", ("-O", "bigalloc", "-C", str(64 * KIB)), "rw"),
    "ext4 no journal": ("ext4", ("-O", "^has_journal"), "rw"),
    "ext4 data=journal": ("ext4", (), "data=journal"),
    "ext4 no extents": ("ext4", ("-O", "^extents,^64bit"), "rw"),
}
"""The kind of file system, the options of its mkfs, and of its mount."""

LENGTHS = (64 * KIB, 100, 700 * KIB + 13, 4 * KIB, MIB)
"""Of writes that follow one another."""
FICLONE = 0x40049409


def written(path: Path, content: bytearray, start: int, noise: random.Random) -> int:
    """Write from there on, and count the pages that stay a second after all is durable and closed."""
    with opened(path) as fd:
        for length in LENGTHS:
            data = noise.randbytes(length)
            write_dontcache(fd, start, data)
            content[start : start + length] = data
            start += length
        os.fsync(fd)
    with opened(path, os.O_RDONLY) as fd:
        return pages_left(fd, len(content), SECONDS)


def steps(root: Path, contents: dict[str, bytearray], has_unwritten: bool, has_clones: bool) -> dict[str, int]:
    """The pages that stay of each step."""
    noise = random.Random(len(contents))
    file = contents["file"] = bytearray()
    left = {
        "new": written(root / "file", file, 0, noise),
        "over old": written(root / "file", file, 300 * KIB + 7, noise),
    }
    if has_unwritten:
        with opened(root / "unwritten") as fd:
            os.posix_fallocate(fd, 0, 4 * MIB)
        contents["unwritten"] = bytearray(4 * MIB)
        left["over unwritten"] = written(root / "unwritten", contents["unwritten"], MIB, noise)
    if has_clones:
        with opened(root / "file") as fd, opened(root / "clone") as clone:
            fcntl.ioctl(clone, FICLONE, fd)
        contents["clone"] = bytearray(file)
        left["over shared"] = written(root / "clone", contents["clone"], 5 * KIB, noise)
    return left


def tried(kind: str, options: tuple[str, ...], mode: str) -> list[str]:
    """What is wrong with a format."""
    contents: dict[str, bytearray] = {}
    with file_system(kind, NVME, *options, mode=mode) as root:
        left = steps(root, contents, "^extents,^64bit" not in options, kind == "xfs")
        wrong = [f"{pages} pages left {step}" for step, pages in left.items() if pages]
        try:
            until(lambda: counter(NVME) == NOTHING, 5, "the counter is exact")
        except AssertionError:
            wrong.append(f"the counter is {counter(NVME)}")
        run("umount", root)
        run("mount", "-t", kind, "-o", mode, NVME, root)
        wrong += [f"other data in {name}" for name, content in contents.items() if (root / name).read_bytes() != content]
    return wrong


def formats() -> Verdict:
    wrong = {name: tried(*how) for name, how in FORMATS.items()}
    figures = "; ".join(f"{name}: {', '.join(words)}" for name, words in wrong.items() if words)
    return Verdict(not figures, figures or f"{len(FORMATS)} formats")


if __name__ == "__main__":
    main(formats, breaks_c=True)
