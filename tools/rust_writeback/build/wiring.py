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


def touched(patch: Path) -> list[str]:
    """The files that a patch changes."""
    text = patch.read_text()
    if "\n--- /dev/null" in f"\n{text}":
        raise Failure(f"{patch} makes a new file; put it into tools/overlay.toml instead")
    return re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)


def apply(version: str, tree: Path = paths.LINUX, project: Path = paths.PROJECT) -> None:
    """Bring every file that the patches touch to its wired content.

    All patches are applied aside first: the tree changes only if each hunk fits.
    """
    originals = tree.with_name(f"{tree.name}.orig")
    wanted = patches(project)
    names = {name for patch in wanted for name in touched(patch)}
    for name in names:
        if not (tree / name).is_file():
            raise Failure(f"Linux {version} has no {name}, which the wiring patches change; rebase them")
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
                failed = re.search(r"(\S+)\n(?:Hunk .* succeeded .*\n)*(Hunk .* FAILED at \d+)", result.stdout)
                said = " ".join(failed.groups()) if failed else result.stdout.strip().splitlines()[-1]
                raise Failure(f"{patch} does not apply to Linux {version}: {said}; rebase the patch")
        for name in sorted(names):
            write_if_changed(tree / name, (aside / name).read_bytes())

    for path in [path for path in originals.rglob("*") if path.is_file()]:
        name = str(path.relative_to(originals))
        if name not in names:  # a patch no longer touches it
            write_if_changed(tree / name, path.read_bytes())
            path.unlink()
