# SPDX-License-Identifier: GPL-2.0
"""The variants that a benchmark compares: the cores."""

KERNEL = "kernel"
"""In place of a core: a kernel that has none of ours, or whose core does not vary."""

CORE_NAMES = {"c": "C", "rust": "Rust", KERNEL: "this kernel"}
CORES = ("c", "rust")


def title(name: str) -> str:
    """A variant's name as people read it; a mode's is its own."""
    return CORE_NAMES.get(name, name)
