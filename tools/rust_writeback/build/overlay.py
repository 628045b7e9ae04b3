# SPDX-License-Identifier: GPL-2.0
"""Puts our files and our hooks into the kernel tree.

tools/overlay.toml lists our files one by one; none may take the place of a file of the kernel. Hooks are patches of
the kernel's own files, one patch a folder. A patched file is always made anew from its pristine original and all
patches. So an edited patch takes effect without unpacking the kernel again.
"""

import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

from .. import paths
from ..errors import Failure
from ..steps import write_if_changed, write_whole

ALLOWLIST = paths.TOOLS / "overlay.toml"
FOLDERS = ("rust", "mm", "fs", "block")


def read_allowlist(project: Path = paths.PROJECT) -> dict[str, str]:
    """The allowlist, file of the project -> place in the kernel tree, checked."""
    places: dict[str, str] = tomllib.loads((project / ALLOWLIST.relative_to(paths.PROJECT)).read_text())
    for source in places:
        if not (project / source).is_file():
            raise Failure(f"{ALLOWLIST.name} lists {source}, which does not exist; make it or take it off the list")
    return places


def patches(project: Path = paths.PROJECT) -> list[Path]:
    """The wiring patches, in the order in which they apply."""
    return [path for folder in FOLDERS if (path := project / folder / "wiring.patch").is_file()]


def touched(patch: Path) -> list[str]:
    """The files that a patch changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)


def patched(version: str, tree: Path, originals: Path, project: Path) -> dict[str, bytes]:
    """What all patches make of the files that they change, whose originals are kept. The tree stays as it is."""
    names = {name for patch in patches(project) for name in touched(patch)}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if not (tree / name).is_file():
                raise Failure(f"Linux {version} has no {name}, which the wiring patches change; rebase them")
            if not (originals / name).exists():
                write_whole(originals / name, (tree / name).read_bytes())
            write_whole(Path(folder, name), (originals / name).read_bytes())
        for patch in patches(project):
            command = ["patch", "-p1", "-F0", "--batch", "--forward", "-r", "-", "-d", folder, "-i", str(patch)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                failed = re.search(r"(\S+)\n(?:Hunk .* succeeded .*\n)*(Hunk .* FAILED at \d+)", result.stdout)
                said = " ".join(failed.groups()) if failed else result.stdout.strip().splitlines()[-1]
                raise Failure(f"{patch} does not apply to Linux {version}: {said}; rebase the patch")
        return {name: Path(folder, name).read_bytes() for name in names}


def apply(version: str, tree: Path = paths.LINUX, project: Path = paths.PROJECT) -> None:
    """Give our files and the patched ones their content, and make the others as the kernel has them.

    The tree changes only if each hunk fits. A file that has its content already keeps its time, so that make does not
    rebuild it. The manifest beside the tree names what differs from the kernel; it is written before the first file.
    """
    originals, manifest = (tree.with_name(f"{tree.name}.{end}") for end in ("orig", "overlay"))
    before = set(manifest.read_text().splitlines()) if manifest.exists() else set()
    wanted = patched(version, tree, originals, project)
    kept = {str(path.relative_to(originals)) for path in originals.rglob("*") if path.is_file()}
    for source, place in read_allowlist(project).items():
        if place in kept | wanted.keys() or (place not in before and (tree / place).exists()):
            raise Failure(f"{source} would overwrite {place} of the kernel; choose another place or a wiring patch")
        wanted[place] = (project / source).read_bytes()
    write_if_changed(manifest, "".join(f"{name}\n" for name in sorted(before | wanted.keys())))
    for name in (before | kept) - wanted.keys():
        if name in kept:
            write_if_changed(tree / name, (originals / name).read_bytes())
            (originals / name).unlink()
        else:
            (tree / name).unlink(missing_ok=True)
    for name, content in wanted.items():
        write_if_changed(tree / name, content)
    write_whole(manifest, "".join(f"{name}\n" for name in sorted(wanted)))
