# SPDX-License-Identifier: GPL-2.0
"""Files of the kernel: reading them, writing them, and taking figures out of them."""

import json
import os
import sys
from typing import Any

DEBUGFS = "/sys/kernel/debug/rust_writeback"
TRACING = "/sys/kernel/tracing"
SECTOR = 512


class Refused(Exception):
    """There is no result, and this is why."""


def say(kind: str, **fields: Any) -> None:
    """One line for the host."""
    sys.stdout.write(json.dumps({"kind": kind, **fields}) + "\n")
    sys.stdout.flush()


def read(path: str) -> str:
    """A small file, without the newline at its end."""
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read().strip()


def write(path: str, text: str) -> None:
    """One value into a file of the kernel."""
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def counter(text: bytes, bdi: bytes) -> int:
    """COUNTED of one bdi: what the counter claims."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == bdi:
            return int(words[1])
    raise Refused(f"dontcache_dirty has no line for {bdi.decode()}")


def counter_now(bdi: bytes) -> int | None:
    """The counter at this moment. A file system with a bdi of its own, which no device's number names, has none."""
    try:
        return counter(read(f"{DEBUGFS}/dontcache_dirty").encode(), bdi)
    except (OSError, Refused):
        return None


def disk_of(number: int) -> bytes:
    """The disk that a device number belongs to, itself or with a partition; it has the bdi."""
    name = f"{os.major(number)}:{os.minor(number)}"
    folder = f"/sys/dev/block/{name}"
    return (read(f"{folder}/../dev") if os.path.exists(f"{folder}/partition") else name).encode()


def vmstat(text: bytes, name: bytes) -> int:
    """One value of /proc/vmstat, without taking all the others apart."""
    start = text.index(b"\n" + name + b" ") + len(name) + 2
    return int(text[start : text.index(b"\n", start)])


def available() -> int:
    """The bytes that programs and clean pages of files can have, as the kernel estimates them."""
    return int(read("/proc/meminfo").partition("MemAvailable:")[2].split()[0]) << 10


def stat_of(bdi: bytes) -> str:
    """The file that says what a device has done; nothing for btrfs, whose number is no device's."""
    path = f"/sys/dev/block/{bdi.decode()}/stat"
    return path if os.path.exists(path) else ""


def transferred(stat: bytes | str) -> dict[str, int]:
    """What a device has done so far, from its stat file: bytes, writes as the device got them, and flushes."""
    words = [int(word) for word in stat.split()] or [0] * 17
    return {"read": words[2] * SECTOR, "written": words[6] * SECTOR, "writes": words[4], "flushes": words[15]}
