# SPDX-License-Identifier: GPL-2.0
"""overlayfs, btrfs, NFS 3, quotas, xfs with a realtime device, zones, ext4 with encryption, verity; drives that fail"""

import contextlib
import errno
import fcntl
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from lib.devices import parts
from lib.dontcache import KIB, MIB, MKFS, NVME, RWF_DONTCACHE, file_system, mounted, opened, run, start_writeback, sync
from lib.dontcache import write_dontcache
from lib.formats import SECONDS, Format, Place, Steps, plain, wrong_with, wrong_with_all
from lib.nfs import serve_by, served
from lib.row import Verdict, main, of_each, pages_left, quiet_counter
from lib.walk import NullBlock, SECTOR, sectors

OVERLAY = Path("/tmp/overlay")
ADD_KEY, SET_POLICY, ENABLE_VERITY = 0xC0506617, 0x800C6613, 0x40806685
KEY = bytes(range(64))
ZONES, ZONE_MIB = 32, 16
ZONED = "/opt/zoned"
ZONED_MKFS = (f"{ZONED}/ld-linux-x86-64.so.2", "--library-path", ZONED, f"{ZONED}/mkfs.xfs", "-q", "-f")
"""The guest's own knows no zones."""


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


def with_data_on(data: str, node: str, *command: object) -> Format:
    """xfs with data on a device of its own, which knows of the device's zones if there are any."""
    has_zones = Path("/sys/block", Path(data).name, "queue/zoned").read_text().strip() != "none"

    @contextlib.contextmanager
    def place(fresh: bool) -> Iterator[Place]:
        if fresh:
            run(*command, f"rtdev={data}", node)
        with mounted("xfs", node, f"rtdev={data}") as root:
            assert Path("/sys/fs/xfs", Path(node).name, "zoned").exists() == has_zones
            yield Place(root, root, node)

    return place


def realtime() -> dict[str, str]:
    """A device for data, and one whose zones have to be written in order."""
    zones = NullBlock(ZONES * ZONE_MIB, 4 * KIB, zoned=1, zone_size=ZONE_MIB, poll_queues=0)
    with parts(2) as (node, data), zones:
        formats = {
            "xfs with a realtime device": with_data_on(data, node, *MKFS["xfs"], "-d", "rtinherit=1", "-r"),
            "xfs with zones": with_data_on(zones.device, node, *ZONED_MKFS, "-r"),
        }
        return wrong_with_all(formats)


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


@contextlib.contextmanager
def nfs_3(fresh: bool) -> Iterator[Place]:
    """A client whose server writes with DONTCACHE, too."""
    with plain("xfs")(fresh) as behind, served(behind.root, version=3) as root:
        serve_by("dontcache")
        yield Place(root, root, str(root), 2)


FILE_SYSTEMS = {
    "NFS 3": nfs_3,
    "btrfs": plain("btrfs"),
    "btrfs, compressed": plain("btrfs", mode="compress-force=zlib"),
    "btrfs, nodatacow": plain("btrfs", mode="nodatacow"),
    "overlay on xfs": overlay("xfs"),
    "overlay on ext4": overlay("ext4"),
    "xfs with quotas": plain("xfs", mode="uquota,pquota"),
    "ext4 with quotas": plain("ext4", "-O", "quota", mode="usrquota,grpquota"),
    "ext4 with encryption": encrypted,
}


def large_folios() -> str:
    """btrfs ends the writeback of large folios with interrupts off: these do not wait for others, as pages do for 50 ms."""
    waits = []
    with plain("btrfs")(True) as place, opened(place.root / "file") as fd:
        for offset in range(0, 8 * MIB, MIB):
            write_dontcache(fd, offset, bytes(MIB))
            start_writeback(fd, offset, MIB, wait=True)
            start = time.monotonic()
            pages_left(fd, offset + MIB, SECONDS)
            waits.append(time.monotonic() - start)
    return f"they wait for {1000 * min(waits):.0f} ms" if min(waits) > 0.045 else ""


def verified(steps: Steps) -> None:
    """One of the files is checked against hashes when it is read, and cannot be written any more."""
    steps.all()
    with opened(steps.place.root / "file", os.O_RDONLY) as fd:
        # struct fsverity_enable_arg: SHA-256 of blocks of 4 KiB.
        fcntl.ioctl(fd, ENABLE_VERITY, struct.pack("<III116x", 1, 1, 4 * KIB))
    steps.read("of a file with verity", "file", 64 * KIB)


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


def error(kind: str) -> str:
    """The drive fails: fsync tells it, and what is counted is there."""
    with NullBlock(512, SECTOR) as disk, file_system(kind, disk.device) as root, contextlib.ExitStack() as stack:
        over = stack.enter_context(overlaid(root)) if kind == "xfs" else root
        fd = stack.enter_context(opened(over / "file"))
        write_dontcache(fd, 0, bytes(MIB))
        assert sync(fd) == 0
        bad = 0, 128 * MIB // SECTOR - 1
        if kind == "xfs":
            with opened(root / "upper" / "file") as below:
                bad = sectors(below, 0)
        write_dontcache(fd, 0, bytes(MIB))
        with disk.failing(*bad):
            told = sync(fd)
            counted, true = quiet_counter(disk.device if kind == "xfs" else kind)
    return "" if told == errno.EIO and counted == true else f"fsync tells {told}, {counted} pages of {true} are counted"


def file_systems() -> Verdict:
    last = {"btrfs, large folios": large_folios(), "overlay on tmpfs, which refuses": refusal()}
    last["ext4 with verity"] = wrong_with(plain("ext4", "-O", "verity"), verified)
    errors = {"btrfs, a drive that fails": error("btrfs"), "overlay, a drive that fails": error("xfs")}
    return of_each(wrong_with_all(FILE_SYSTEMS) | realtime() | last | errors)


main(file_systems, breaks_c=True, stacks=True)
