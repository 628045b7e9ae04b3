# SPDX-License-Identifier: GPL-2.0
"""Applies our hooks to the kernel's own files: one small patch a folder.

A patched file is always made anew from its pristine original and all patches. So an edited patch takes effect
without unpacking the kernel again, and a file whose patched content stays the same is not rebuilt.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from .. import paths
from ..errors import Failure
from ..steps import write_if_changed, write_whole

FOLDERS = ("rust", "mm", "fs", "block")


def patches(project: Path = paths.PROJECT) -> list[Path]:
    """The wiring patches, in the order in which they apply."""
    return [path for folder in FOLDERS if (path := project / folder / "wiring.patch").is_file()]


def touched(patch: Path) -> dict[str, list[str]]:
    """The files that a patch changes, each with the headers of its hunks."""
    files: dict[str, list[str]] = {}
    current: list[str] = []
    for line in patch.read_text().splitlines():
        if name := re.match(r"\+\+\+ b/(\S+)", line):
            current = files.setdefault(name[1], [])
        elif line.startswith("--- /dev/null"):
            raise Failure(f"{_name(patch)} makes a new file; put it into tools/overlay.toml instead")
        elif re.match(r"@@ -\d", line):
            current.append(line)
    return files


def _name(patch: Path) -> str:
    return f"{patch.parent.name}/{patch.name}"


def _failed_hunk(patch: Path, output: str) -> str:
    """The file and the hunk that the patch program complained of first."""
    file = hunk = ""
    for line in output.splitlines():
        if name := re.match(r"patching file '?([^\s']+)", line):
            file = name[1]
        elif failed := re.match(r"Hunk #(\d+) FAILED", line):
            hunk = touched(patch)[file][int(failed[1]) - 1]
            break
    return f"hunk {hunk} of {file}" if hunk else f"a part of it ({output.strip().splitlines()[-1]})"


def apply(version: str, tree: Path = paths.LINUX, project: Path = paths.PROJECT) -> None:
    """Bring every file that the patches touch to its wired content.

    All patches are applied aside first: the tree changes only if each hunk fits.
    """
    originals = tree.with_name(f"{tree.name}.orig")
    wanted = patches(project)
    names = {name for patch in wanted for name in touched(patch)}
    for patch in wanted:
        for name, hunks in touched(patch).items():
            if not (tree / name).is_file():
                raise Failure(f"{_name(patch)}: Linux {version} has no {name} for hunk {hunks[0]}; rebase the patch")
            if not (originals / name).exists():
                write_whole(originals / name, (tree / name).read_bytes())

    with tempfile.TemporaryDirectory() as folder:
        aside = Path(folder)
        for name in names:
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(originals / name, aside / name)
        for patch in wanted:
            command = ["patch", "-p1", "-F0", "--batch", "--forward", "-r", "-", "-d", folder, "-i", str(patch)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                raise Failure(
                    f"{_name(patch)}: {_failed_hunk(patch, result.stdout + result.stderr)} "
                    f"does not apply to Linux {version}; rebase the patch"
                )
        for name in sorted(names):
            _put(tree / name, (aside / name).read_bytes())

    for path in [path for path in originals.rglob("*") if path.is_file()]:
        name = str(path.relative_to(originals))
        if name not in names:  # a patch no longer touches it
            _put(tree / name, path.read_bytes())
            path.unlink()


def _put(path: Path, content: bytes) -> None:
    mode = path.stat().st_mode
    if write_if_changed(path, content):
        path.chmod(mode)
