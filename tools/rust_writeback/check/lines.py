# SPDX-License-Identifier: GPL-2.0
"""make lines: count the lines of C and of Rust of each mechanism, as a table for the README.

Empty lines and lines with only a comment do not count. Each file of the overlay that is not for tests belongs to one
mechanism. Files that several mechanisms use are in a row of their own. The files of the series' last patch, which is
not for merging, do not count either.
"""

import fnmatch
import hashlib
import re
import tomllib
from pathlib import Path

from .. import paths
from ..errors import Failure, Parser
from ..tables import markdown

MECHANISMS = {
    "counter": r"dontcache_counter|kernel/dontcache\.|account|dropbehind_dirty",
    "kick and round": r"dontcache_wb|fs/dontcache\.rs|kick|round|flush",
    "walk": r"_walk|buffer_head|block_range",
    "bio": r"bio",
    "drop": r"dropbehind",
    "shared": r"backing_dev|folio|inode|address_space|percpu|sched|writeback/mod|rust_writeback",
}
"""The first that is found in a file's name is its mechanism."""
NOT_COUNTED = r"^kunit/|Kconfig|\.rst$"
"""Tests, configuration and documentation."""
C_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
RUST_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def code(path: Path) -> str:
    """The lines of a file that are neither empty nor comment."""
    text = (RUST_COMMENT if path.suffix == ".rs" else C_COMMENT).sub("", path.read_text())
    return "\n".join(line for line in text.splitlines() if line.strip())


def fingerprint(project: Path = paths.PROJECT) -> str:
    """What tells kernel code from other kernel code: comments, empty lines and documentation change nothing."""
    digest = hashlib.sha256()
    overlay = tomllib.loads((project / "tools" / "overlay.toml").read_text())
    for name in sorted(overlay):
        if not re.search(NOT_COUNTED, name):
            digest.update(f"{name}\n{code(project / name)}\n".encode())
    for patch in sorted(project.glob("*/wiring.patch")):
        added = (line for line in patch.read_text().splitlines() if line.startswith(("+", "-")) and line[1:].strip())
        digest.update("\n".join(added).encode())
    return digest.hexdigest()[:12]


def mechanism(name: str) -> str:
    """Which mechanism a file belongs to."""
    for title, pattern in MECHANISMS.items():
        if re.search(pattern, name):
            return title
    raise Failure(f"{name} belongs to no mechanism; add it to MECHANISMS in {Path(__file__).name}")


def not_for_merging(project: Path) -> list[str]:
    """The files that the last patch of the series brings, as patterns."""
    plan = tomllib.loads((project / "tools" / "series.toml").read_text())
    last = plan["patch"][-1]
    # Another patch behind it would silently take its place, and the table would be of other files.
    if not last["subject"].startswith("not for merging"):
        raise Failure(f"the last patch of series.toml is {last['subject']!r}; put the one that is not for merging last")
    patterns: list[str] = last["files"]
    return patterns


def hooks(project: Path) -> int:
    """Lines that the wiring patches add to the kernel's C, without build files, and without what `counted` leaves out.

    What is for both cores is left out, too.
    """
    from ..build import series  # which needs this module for its figures

    plan = tomllib.loads((project / "tools" / "series.toml").read_text())["patch"]
    left_out = [patch.get("lines", {}) for patch in plan if patch.get("changes_c") or patch is plan[-1]]
    added = 0
    for folder in ("mm", "fs", "block"):
        for name, units in series.in_hunks((project / folder / "wiring.patch").read_text()).items():
            words = [word for lines in left_out for word in lines.get(name, [])]
            for block in (block for unit in units for block in series.taken_apart(unit) if name.endswith((".c", ".h"))):
                if not any(word == "*" or word in "".join(block.added) for word in words):
                    added += sum(bool(line.strip()) for line in block.added)
    return added


def counted(project: Path = paths.PROJECT) -> dict[str, dict[str, int]]:
    """Lines by mechanism and language."""
    overlay = tomllib.loads((project / "tools" / "overlay.toml").read_text())
    left_out = not_for_merging(project)
    table = {title: {"C": 0, "core": 0, "abstractions and edges": 0} for title in MECHANISMS}
    for name in overlay:
        if re.search(NOT_COUNTED, name) or any(fnmatch.fnmatch(name, pattern) for pattern in left_out):
            continue
        kind = "C"
        if name.endswith(".rs"):
            kind = "core" if "/writeback/" in name else "abstractions and edges"
        table[mechanism(name)][kind] += len(code(project / name).splitlines())
    return table


def main(arguments: list[str]) -> int:
    """Print the table."""
    Parser(prog="lines", description=__doc__).parse_args(arguments)
    table = counted()
    kinds = ("C", "core", "abstractions and edges")
    table["in all"] = {kind: sum(lines[kind] for lines in table.values()) for kind in kinds}
    rows = [[title, *(str(lines[kind]) for kind in kinds)] for title, lines in table.items()]
    print(markdown(("mechanism", "C", "Rust, pure core", "Rust, abstractions and edges"), rows))
    print(f"\nHooks in the kernel's own C: {hooks(paths.PROJECT)} lines.")
    return 0
