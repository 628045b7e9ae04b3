# SPDX-License-Identifier: GPL-2.0
"""Paths inside the build root.

The paths are fixed, whatever the folders are called outside. So compilers see the same paths in every
checkout, and ccache recognises the work of another checkout.
"""

from pathlib import Path

PROJECT = Path("/src")
CACHE = Path("/cache")
SHARE = Path("/share")

TOOLS = PROJECT / "tools"
BUILD = PROJECT / "build"
LOG = BUILD / "log"
STAMPS = BUILD / "stamps"

LINUX = BUILD / "linux"
"""The kernel tree with our files and hooks in it."""

KERNEL_OUT = BUILD / "kernel"
"""The kernel's build folder (O=)."""

BZIMAGE = BUILD / "bzImage"
DOT_CONFIG = BUILD / ".config"
