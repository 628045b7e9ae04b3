# SPDX-License-Identifier: GPL-2.0
"""Copies our files into the kernel tree, as listed file by file in tools/overlay.toml.

No file of the kernel is ever overwritten this way. Changes to the kernel's own files are in the wiring patches.
"""

import tomllib
from pathlib import Path

from .. import paths
from ..errors import Failure
from ..steps import write_if_changed, write_whole

ALLOWLIST = paths.TOOLS / "overlay.toml"


def read_allowlist(allowlist: Path = ALLOWLIST, project: Path = paths.PROJECT) -> dict[str, str]:
    """The allowlist, file of the project -> place in the kernel tree, checked."""
    table: dict[str, str] = tomllib.loads(allowlist.read_text())
    places: dict[str, str] = {}
    for source, place in table.items():
        if not (project / source).is_file():
            raise Failure(f"{allowlist.name} lists {source}, which does not exist; make it or take it off the list")
        if place in places.values():
            raise Failure(f"{allowlist.name} lists two files for {place}; keep one")
        places[source] = place
    return places


def inputs(project: Path = paths.PROJECT) -> list[str | bytes | Path]:
    """What the overlay is made of, for the key of a step."""
    items: list[str | bytes | Path] = []
    for source, place in sorted(read_allowlist(project=project).items()):
        items += [place, project / source]
    return items


def apply(tree: Path = paths.LINUX, project: Path = paths.PROJECT, allowlist: Path = ALLOWLIST) -> None:
    """Put the listed files into the tree and take away what is no longer listed.

    A file that is there with the same content keeps its time, so that make does
    not rebuild it. The manifest beside the tree says which files are ours; it is
    written before the first of them.
    """
    places = read_allowlist(allowlist, project)
    manifest = tree.with_name(f"{tree.name}.overlay")
    ours = set(manifest.read_text().splitlines()) if manifest.exists() else set()
    for source, place in places.items():
        if place not in ours and (tree / place).exists():
            raise Failure(f"{source} would overwrite {place} of the kernel; choose another place or a wiring patch")
    write_if_changed(manifest, "".join(f"{place}\n" for place in sorted(ours | set(places.values()))))
    for place in ours - set(places.values()):
        (tree / place).unlink(missing_ok=True)
    for source, place in places.items():
        write_if_changed(tree / place, (project / source).read_bytes())
    write_whole(manifest, "".join(f"{place}\n" for place in sorted(places.values())))
