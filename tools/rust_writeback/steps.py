# SPDX-License-Identifier: GPL-2.0
"""Skips steps whose inputs have the same content as before.

A step has a key, a digest of all it depends on, and products. Its stamp holds the key and is written last,
so a step that was cut short is done again. File times play no part: a fresh checkout of the same content is
up to date.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from . import paths
from .errors import Failure


def digest(*inputs: str | bytes | Path) -> str:
    """A digest over strings, the content of files, and whole folders.

    A path that does not exist is an input like any other.
    """
    total = hashlib.sha256()
    for item in inputs:
        if isinstance(item, str):
            item = item.encode()
        if isinstance(item, bytes):
            total.update(b"text %d:" % len(item) + item)
        elif item.is_dir():
            for path in sorted(path for path in item.rglob("*") if path.is_file()):
                total.update(f"{path.relative_to(item)}:{digest(path)}\n".encode())
        elif item.is_file():
            with item.open("rb") as file:
                total.update(b"file:" + hashlib.file_digest(file, "sha256").digest())
        else:
            total.update(b"absent\n")
    return total.hexdigest()


def step(name: str, key: str, products: list[Path], action: Callable[[], None]) -> bool:
    """Do the action unless it was done for this key and its products are there; says whether it was done now."""
    stamp = paths.STAMPS / name
    if stamp.exists() and stamp.read_text() == key and all(product.exists() for product in products):
        return False
    stamp.unlink(missing_ok=True)
    action()
    write_whole(stamp, key)
    return True


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_if_changed(path: Path, content: str | bytes) -> None:
    """Write a file whole unless it has that content already, which keeps its time.

    make then rebuilds only what depends on files that really changed.
    """
    data = content.encode() if isinstance(content, str) else content
    if not path.exists() or path.read_bytes() != data:
        write_whole(path, data)


def need_room(where: Path, gib: float, what: str) -> None:
    """Stop before a big step that the disk cannot hold."""
    where.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(where).free / 2**30
    if free < gib:
        raise Failure(f"no room for {what}: {gib:g} GiB are needed and {where} has {free:.1f} GiB; free some space")


@contextlib.contextmanager
def only_one(name: str) -> Iterator[None]:
    """Hold a lock of the build folder; the kernel releases it with the process."""
    paths.BUILD.mkdir(parents=True, exist_ok=True)
    with (paths.BUILD / f".{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{name}: another command uses this build folder; waiting for it", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
