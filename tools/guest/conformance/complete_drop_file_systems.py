#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""overlayfs on xfs, ext4 and tmpfs, btrfs, quotas, xfs with a realtime device, ext4 with encryption and with verity"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from lib.devices import parts
from lib.dontcache import MIB, MKFS, NVME, RWF_DONTCACHE, forget, mounted, opened, run, write_dontcache
from lib.dropping import pages_left
from lib.formats import SECONDS, Format, Place, plain, wrong_with_all
from lib.row import KIB, Verdict, main, of_each

OVERLAY = Path("/tmp/overlay")
ADD_KEY, SET_POLICY, ENABLE_VERITY = 0xC0506617, 0x800C6613, 0x40806685
KEY = bytes(range(64))


@contextlib.contextmanager
def overlaid(upper: Path) -> Iterator[Path]:
    """An overlay whose files are written to below this folder."""
    for name in ("lower", "upper", "work"):
        (upper / name).mkdir(exist_ok=True)
    folders = f"lowerdir={upper / 'lower'},upperdir={upper / 'upper'},workdir={upper / 'work'}"
    with mounted("overlay", "none", folders, OVERLAY) as root:
        yield root


def overlay(kind: str) -> Format:
    @contextlib.contextmanager
    def place(fresh: bool) -> Iterator[Place]:
        with plain(kind)(fresh) as upper, overlaid(upper.root) as root:
            yield Place(root, upper.root / "upper", NVME)

    return place


def realtime() -> dict[str, str]:
    """Data on a device of its own."""
    with parts(2) as (node, data):

        @contextlib.contextmanager
        def place(fresh: bool) -> Iterator[Place]:
            if fresh:
                run(*MKFS["xfs"], "-d", "rtinherit=1", "-r", f"rtdev={data}", node)
            with mounted("xfs", node, f"rtdev={data}") as root:
                yield Place(root, root, node)

        return wrong_with_all({"xfs with a realtime device": place})


@contextlib.contextmanager
def encrypted(fresh: bool) -> Iterator[Place]:
    with plain("ext4", "-O", "encrypt")(fresh) as place:
        folder = place.root / "secret"
        folder.mkdir(exist_ok=True)
        # struct fscrypt_add_key_arg: a key that is named by its own hash.
        argument = bytearray(struct.pack("<II32xII32x", 2, 0, len(KEY), 0) + KEY)
        with opened(folder, os.O_RDONLY) as fd:
            fcntl.ioctl(fd, ADD_KEY, argument)
            # struct fscrypt_policy_v2: AES-256 in XTS for data, in CTS for names.
            fcntl.ioctl(fd, SET_POLICY, struct.pack("<BBBBB3x16s", 2, 1, 4, 0, 0, argument[8:24]))
        yield Place(folder, folder, place.device)


FILE_SYSTEMS = {
    "btrfs": plain("btrfs"),
    "btrfs, compressed": plain("btrfs", mode="compress-force=zlib"),
    "btrfs, nodatacow": plain("btrfs", mode="nodatacow"),
    "overlay on xfs": overlay("xfs"),
    "overlay on ext4": overlay("ext4"),
    "xfs with quotas": plain("xfs", mode="uquota,pquota"),
    "ext4 with quotas": plain("ext4", "-O", "quota", mode="usrquota,grpquota"),
    "ext4 with encryption": encrypted,
}


def verity() -> str:
    """Reads of a file whose data is checked against hashes."""
    data = os.urandom(MIB)
    with plain("ext4", "-O", "verity")(True) as place:
        path = place.root / "file"
        with opened(path) as fd:
            write_dontcache(fd, 0, data)
        with opened(path, os.O_RDONLY) as fd:
            # struct fsverity_enable_arg: SHA-256 of blocks of 4 KiB.
            fcntl.ioctl(fd, ENABLE_VERITY, struct.pack("<III116x", 1, 1, 4 * KIB))
            forget(fd, MIB)
            got = bytearray(MIB)
            assert os.preadv(fd, [got], 0, RWF_DONTCACHE) == MIB
            assert got == data
            left = pages_left(fd, MIB, SECONDS)
    return f"{left} pages left by a read" if left else ""


def refusal() -> str:
    """An overlay on a file system without DONTCACHE refuses it, and nothing is written."""
    with mounted("tmpfs", "none", "rw", OVERLAY.with_name("upper")) as upper, overlaid(upper) as root:
        with opened(root / "file") as fd:
            for call in (os.pwritev, os.preadv):
                try:
                    call(fd, [bytearray(KIB)], 0, RWF_DONTCACHE)
                    return f"{call.__name__} succeeds"
                except OSError as error:
                    assert error.errno == errno.EOPNOTSUPP, error
            assert os.fstat(fd).st_size == 0
    return ""


def file_systems() -> Verdict:
    last = {"ext4 with verity": verity(), "overlay on tmpfs, which refuses": refusal()}
    return of_each(wrong_with_all(FILE_SYSTEMS) | realtime() | last)


if __name__ == "__main__":
    main(file_systems, breaks_c=True, stacks=True)
