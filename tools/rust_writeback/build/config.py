# SPDX-License-Identifier: GPL-2.0
"""Merges fragments into the kernel's configuration, and checks the result.

Kconfig silently drops unknown options, and options that lack a dependency. Here an option that does not have
the requested value stops the build.
"""

import re
from pathlib import Path

from ..errors import Failure

OPTION = re.compile(r"(CONFIG_\w+)=(.+)")
UNSET = re.compile(r"# (CONFIG_\w+) is not set")


def parse(text: str) -> dict[str, str]:
    """The options of a fragment or a .config; one that is not set has the value n."""
    options: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if found := OPTION.fullmatch(line.strip()):
            options[found[1]] = found[2]
        elif found := UNSET.fullmatch(line.strip()):
            options[found[1]] = "n"
        elif line.strip() and not line.startswith("#"):
            raise Failure(f"line {number} of a kernel configuration is not understood: {line.strip()}")
    return options


def merge(fragments: list[Path]) -> dict[str, str]:
    """The options of several fragments; a later one overrides an earlier one."""
    merged: dict[str, str] = {}
    for fragment in fragments:
        merged |= parse(fragment.read_text())
    return merged


def render(options: dict[str, str]) -> str:
    """Options in the form that Kconfig reads."""
    return "".join(f"# {name} is not set\n" if value == "n" else f"{name}={value}\n" for name, value in options.items())


def check(asked: dict[str, str], final: dict[str, str]) -> None:
    """Compare what was asked for with the final configuration."""
    wrong = [
        f"{name}={value} (it is {final.get(name, 'n')})" for name, value in asked.items() if final.get(name, "n") != value
    ]
    if wrong:
        raise Failure(f"the kernel's configuration does not have {', '.join(wrong)}; see the dependencies in its Kconfig")
