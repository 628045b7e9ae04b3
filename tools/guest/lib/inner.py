# SPDX-License-Identifier: GPL-2.0
"""A loop device on a file of another file system, and the folder where it can be mounted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from lib.dontcache import MIB, run

INNER = Path("/tmp/inner")


@contextlib.contextmanager
def looped(backing: Path, direct: str = "off") -> Iterator[str]:
    with open(backing, "wb") as file:
        file.truncate(64 * MIB)
    node = run("losetup", f"--direct-io={direct}", "--find", "--show", backing).strip()
    try:
        yield node
    finally:
        run("losetup", "--detach", node)
