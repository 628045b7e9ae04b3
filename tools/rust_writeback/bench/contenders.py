# SPDX-License-Identifier: GPL-2.0
"""The variants that a benchmark compares: the cores."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Failure

KERNEL = "kernel"
"""In place of a core: a kernel that has none of ours, or whose core does not vary."""

CORE_NAMES = {"c": "C", "rust": "Rust", KERNEL: "this kernel"}


@dataclass(frozen=True)
class Variant:
    """One of the columns of a comparison."""

    core: str

    @property
    def name(self) -> str:
        """As it is written on a command line and in results."""
        return self.core


def title(name: str) -> str:
    """A variant's name as people read it; a mode's is its own."""
    return CORE_NAMES.get(name, name)


SHORT = (Variant("c"), Variant("rust"))


def parse(text: str) -> list[Variant]:
    """Read c,rust or rust,c: the second is compared with the first."""
    known = {variant.name: variant for variant in SHORT}
    names = text.split(",")
    if sorted(names) != sorted(known):
        raise Failure(f"--variants {text}: give c,rust or rust,c", 2)
    return [known[name] for name in names]
