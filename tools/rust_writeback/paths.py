# SPDX-License-Identifier: GPL-2.0
"""Where things are inside the build root.

The places are fixed, whatever they are called outside, so that compilers see
the same paths in every checkout and ccache recognises the work of another one.
"""

from __future__ import annotations

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
