# SPDX-License-Identifier: GPL-2.0
"""Packs a tree of files as cpio, which the kernel and mke2fs read.

Owners, times and order are fixed, so that the same content gives the same bytes.
"""

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

EPOCH = 1767225600
"""2026-01-01: the time of every file that does not need its own."""


@dataclass(frozen=True)
class Entry:
    """A file, folder or symbolic link: what st_mode says, and the content or where it is."""

    name: str
    mode: int
    source: Path | bytes = b""
    mtime: int = EPOCH

    def content(self) -> bytes:
        """The bytes of a file, the target of a link, nothing for a folder."""
        return self.source.read_bytes() if isinstance(self.source, Path) else self.source


def from_disk(name: str, source: Path) -> Entry:
    """An entry with the content, mode and time (Python checks it) of something on disk."""
    status = source.lstat()
    if stat.S_ISLNK(status.st_mode):
        return link(name, str(source.readlink()))
    if stat.S_ISDIR(status.st_mode):
        return Entry(name, status.st_mode)
    return Entry(name, status.st_mode, source, mtime=int(status.st_mtime))


def folder(name: str, mode: int = 0o755) -> Entry:
    """An empty folder."""
    return Entry(name, stat.S_IFDIR | mode)


def file(name: str, content: bytes | Path, mode: int = 0o644) -> Entry:
    """A file with content of our own."""
    return Entry(name, stat.S_IFREG | mode, content)


def link(name: str, target: str) -> Entry:
    """A symbolic link."""
    return Entry(name, stat.S_IFLNK | 0o777, target.encode())


def cpio(entries: Iterable[Entry]) -> bytes:
    """The entries as a cpio archive of the kind that the kernel unpacks.

    The kernel takes several archives in a row, each starting at four bytes.
    """
    packed = bytearray()
    trailer = Entry("TRAILER!!!", 0, mtime=0)
    for number, entry in enumerate([*entries, trailer], 1):
        content, name = entry.content(), entry.name.encode() + b"\0"
        fields = (number, entry.mode, 0, 0, 1, entry.mtime, len(content), 0, 0, 0, 0, len(name), 0)
        packed += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        packed += bytes(-len(packed) % 4) + content
        packed += bytes(-len(packed) % 4)
    return bytes(packed)
