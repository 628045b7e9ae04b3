# SPDX-License-Identifier: GPL-2.0
"""Debian packages of a guest of another architecture than the build root's. Nothing of them runs here.

The guest runs the programs in them, and its static programs are compiled against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..arch import Arch
from ..build.unpacked import Packages

ESSENTIAL = ("base-files", "base-passwd")
"""What Debian takes for granted, and a guest needs."""

DEVELOPMENT = ("libc6-dev", "libgcc-14-dev", "liburing-dev")
"""What its static programs are linked with."""

UNPACKED_GIB = 0.7
"""Room for the packages and what is in them: 0.1 and 0.35 GiB of 2026."""


def tree(arch: Arch, packages: Sequence[str]) -> Path:
    """The folder in which these packages and what they depend on are unpacked; it is made if need be."""
    names = (*ESSENTIAL, *packages, *DEVELOPMENT)
    what = f"the {arch.name} packages of the guest"
    return Packages(f"guest-{arch.name}", what, names, UNPACKED_GIB, arch.debian).folder()
