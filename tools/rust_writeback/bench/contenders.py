# SPDX-License-Identifier: GPL-2.0
"""What is compared: a core, and for the Rust core a policy."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Failure

POLICIES = ("adaptive", "kick", "inline", "rate-limited", "none")
"""How a DONTCACHE write gets its pages written back; the first is the default. The C core has a kick alone."""

KERNEL = "kernel"
"""In place of a core: a kernel that has none of ours, or whose core does not vary."""

CORE_NAMES = {"c": "C", "rust": "Rust", KERNEL: "this kernel"}


@dataclass(frozen=True)
class Variant:
    """One of the columns of a comparison."""

    core: str
    policy: str = POLICIES[0]

    @property
    def name(self) -> str:
        """As it is written on a command line and in results."""
        return self.core if self.policy == POLICIES[0] else f"{self.core}-{self.policy}"

    @property
    def wanted_policy(self) -> str:
        """The policy to ask the guest for; nothing where it has that anyway."""
        return "" if self.policy == POLICIES[0] else self.policy


def title(name: str) -> str:
    """A variant's name as people read it; a mode's is its own."""
    core, _, policy = name.partition("-")
    return f"{CORE_NAMES.get(core, core)} {policy}".strip()


def parse(text: str) -> list[Variant]:
    """Read c,rust,rust-inline: two or more, of which the first is what the others are compared with."""
    known = {variant.name: variant for variant in (Variant("c"), *(Variant("rust", policy) for policy in POLICIES))}
    names = text.split(",")
    if len(names) < 2 or len(set(names)) < len(names) or not set(names) <= set(known):
        raise Failure(f"--variants {text}: give two or more of {', '.join(known)}, each once", 2)
    return [known[name] for name in names]


SHORT = (Variant("c"), Variant("rust"))
