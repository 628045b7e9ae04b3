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
    "counter": r"account|kernel/dontcache\.",
    "kick and round": r"dontcache_wb|fs/dontcache\.rs|kick|round|flush",
    "walk": r"_walk|buffer_head|block_range",
    "bio": r"bio",
    "drop": r"dropbehind",
    "shared": r"backing_dev|folio|inode|address_space|percpu|sched|writeback/mod|rust_writeback",
}
"""The first that is found in a file's name is its mechanism."""
KINDS = ("C", "Rust, pure core", "Rust, abstractions and edges")
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


def counted() -> tuple[dict[str, dict[str, int]], int]:
    """Lines by mechanism and language, and those of hooks in the kernel's own C, without what is for both cores."""
    from ..build import overlay, series  # which needs this module for its figures

    _, patches = series.read_plan()
    last = patches[-1]
    table = {title: dict.fromkeys(KINDS, 0) for title in MECHANISMS}
    for name in overlay.read_allowlist():
        if re.search(NOT_COUNTED, name) or any(fnmatch.fnmatch(name, pattern) for pattern in last.files):
            continue
        mechanism = next((title for title, pattern in MECHANISMS.items() if re.search(pattern, name)), None)
        if mechanism is None:
            raise Failure(f"{name} belongs to no mechanism; add it to MECHANISMS in {Path(__file__).name}")
        kind = "C" if not name.endswith(".rs") else KINDS[1] if "/writeback/" in name else KINDS[2]
        table[mechanism][kind] += len(code(paths.PROJECT / name).splitlines())
    hooks = 0
    for file in series.hooked(patches):
        if file.name.endswith((".c", ".h")) and not file.name.startswith("rust/"):
            ours = [unit for unit in file.units if patches[unit.patch] != last and not patches[unit.patch].changes_c]
            hooks += sum(bool(line.strip()) for unit in ours for line in unit.added)
    return table, hooks


def main(arguments: list[str]) -> int:
    """Print the table."""
    Parser(prog="lines", description=__doc__).parse_args(arguments)
    table, hooks = counted()
    table["in all"] = {kind: sum(lines[kind] for lines in table.values()) for kind in KINDS}
    rows = [[title, *(str(lines[kind]) for kind in KINDS)] for title, lines in table.items()]
    print(markdown(("mechanism", *KINDS), rows))
    print(f"\nHooks in the kernel's own C: {hooks} lines.")
    return 0
