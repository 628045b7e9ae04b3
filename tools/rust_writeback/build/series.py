# SPDX-License-Identifier: GPL-2.0
"""make series: write our files and hooks to build/series/, as patches that can be applied and mailed.

The built kernel and the mailed patches cannot differ: the patches are cut out of the files of the overlay and
of the wiring patches, and after the last of them each file is what `make kernel` builds.
"""

import fnmatch
import re
import shutil
import subprocess
import tempfile
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .. import paths, steps
from ..bench import kept
from ..bench.summary import DONTCACHE
from ..errors import Failure, Parser, check_flags
from . import kernel, overlay

PLAN = paths.TOOLS / "series.toml"
OUT = paths.BUILD / "series"
ORIGINALS = paths.LINUX.with_name(f"{paths.LINUX.name}.orig")
REST = "*"

BOTH_CORES = "CONFIG_RUST_WRITEBACK_AB"
"""What is below it is for the last patch."""

ITEM = re.compile(r"#include |obj-|(pub )?(mod|use) |source |#\[cfg|$")
"""Lines that stand by themselves: a block of such lines is taken apart."""
LEADS = re.compile(r"\s*(///|#\[)")
"""Lines that belong to the line after them."""


@dataclass
class Patch:
    """One patch of the plan: its mail, its files, and its lines of files that others change as well.

    Some change the kernel's C in every configuration: what they mend or add is for both cores.
    """

    subject: str
    text: str
    files: list[str]
    lines: dict[str, list[str]] = field(default_factory=dict)
    changes_c: bool = False


@dataclass
class Unit:
    """Lines that come into a file, or replace some there, with one patch."""

    place: int
    removed: int
    added: list[str]
    patch: int = -1


@dataclass
class Grown:
    """A file of the kernel tree: what it was, and what comes to it."""

    name: str
    original: list[str]
    units: list[Unit]

    def at(self, number: int) -> str | None:
        """Its text after so many patches; None if it is not there yet."""
        units = [unit for unit in self.units if unit.patch < number]
        if not units and not self.original:
            return None
        lines: list[str] = []
        at = 0
        for unit in sorted(units, key=lambda unit: unit.place):
            lines += self.original[at : unit.place] + unit.added
            at = unit.place + unit.removed
        return "".join(lines + self.original[at:])


def read_plan() -> tuple[dict[str, str], list[Patch]]:
    """The cover letter and the patches."""
    table = tomllib.loads(PLAN.read_text())
    return table["cover"], [Patch(**patch) for patch in table["patch"]]


def in_hunks(patch: str) -> dict[str, list[Unit]]:
    """What a wiring patch does to each file, as units at places of the original."""
    files: dict[str, list[Unit]] = {}
    units: list[Unit] = []
    place = 0
    unit: Unit | None = None
    for line in patch.splitlines(keepends=True):
        if name := re.match(r"\+\+\+ b/(\S+)", line):
            units = files.setdefault(name[1], [])
        elif hunk := re.match(r"@@ -(\d+)", line):
            place, unit = int(hunk[1]) - 1, None
        elif line.startswith(" "):
            place, unit = place + 1, None
        elif line.startswith(("+", "-")) and not line.startswith("--- "):
            if unit is None:
                unit = Unit(place, 0, [])
                units.append(unit)
            if line.startswith("-"):
                unit.removed += 1
                place += 1
            else:
                unit.added.append(line[1:])
    return files


def taken_apart(unit: Unit) -> list[Unit]:
    """A list of includes, modules or objects line by line; what is not such a list, as it is."""
    if unit.removed or not all(ITEM.match(line.rstrip("\n")) for line in unit.added):
        return [unit]
    units: list[Unit] = []
    open_for_more = False
    for line in unit.added:
        if open_for_more or (units and not line.strip()):
            units[-1].added.append(line)
        else:
            units.append(Unit(unit.place, 0, [line]))
        open_for_more = bool(LEADS.match(line)) or not "".join(units[-1].added).strip()
    return units


def held_back(text: str, words: Iterable[str], name: str) -> list[Unit]:
    """A new file as units: the lines that have the words, with what leads to them and is below them; the rest."""
    lines = text.splitlines(keepends=True)
    owner = [""] * len(lines)
    for word in words:
        found = [number for number, line in enumerate(lines) if word in line]
        if len(found) != 1:
            raise Failure(f"{PLAN.name}: {name} has {len(found)} lines with {word!r}; name one line")
        first = last = found[0]
        indent = len(lines[first]) - len(lines[first].lstrip())
        while first and LEADS.match(lines[first - 1]):
            first -= 1
        below = last + 1
        while below < len(lines) and (not lines[below].strip() or len(lines[below]) - len(lines[below].lstrip()) > indent):
            last = below if lines[below].strip() else last
            below += 1
        if first and not lines[first - 1].strip() and last > found[0]:  # a paragraph, with the empty line in front
            first -= 1
        owner[first : last + 1] = [word] * (last + 1 - first)
    units: list[Unit] = []
    for number, line in enumerate(lines):
        if number == 0 or owner[number] != owner[number - 1]:
            units.append(Unit(0, 0, []))
        units[-1].added.append(line)
    return units


def assign(grown: Grown, patches: Sequence[Patch], default: int | None) -> None:
    """Give each unit to the patch that names it, or to the one that takes the rest."""
    claims = {number: patch.lines[grown.name] for number, patch in enumerate(patches) if grown.name in patch.lines}
    rest = [number for number, words in claims.items() if REST in words]
    if default is not None:
        rest.append(default)
    for unit in grown.units:
        text = "".join(unit.added)
        named = [number for number, words in claims.items() if any(word != REST and word in text for word in words)]
        takers = named or rest
        if len(takers) != 1:
            said = " and ".join(f"'{patches[number].subject}'" for number in takers) or "no patch"
            line = next(filter(str.strip, text.splitlines()), "a line that goes")
            raise Failure(f"{PLAN.name}: {line.strip()!r} of {grown.name} belongs to {said}; name one patch")
        unit.patch = takers[0]


def owners(patches: Sequence[Patch], sources: Iterable[str]) -> dict[str, int]:
    """Which patch brings each file of the overlay."""
    found: dict[str, int] = {}
    for source in sources:
        numbers = [n for n, patch in enumerate(patches) if any(fnmatch.fnmatch(source, name) for name in patch.files)]
        if len(numbers) != 1:
            raise Failure(f"{PLAN.name}: {source} is in {len(numbers)} patches; put it into one")
        found[source] = numbers[0]
    return found


def hooked(patches: Sequence[Patch], originals: Path | None = None) -> Iterator[Grown]:
    """The kernel's files that we change, with what each patch brings to them, in their places if there are originals."""
    for wired in overlay.patches():
        for name, units in in_hunks(wired.read_text()).items():
            original = (originals / name).read_text().splitlines(keepends=True) if originals else []
            file = Grown(name, original, [part for unit in units for part in taken_apart(unit)])
            assign(file, patches, None)
            yield file


def grow(patches: Sequence[Patch]) -> list[Grown]:
    """All files that the series touches, with what each patch brings to them."""
    files: list[Grown] = []
    places = overlay.read_allowlist()
    for source, number in owners(patches, places).items():
        name = places[source]
        words = [word for patch in patches for word in patch.lines.get(name, [])]
        file = Grown(name, [], held_back((paths.PROJECT / source).read_text(), words, name))
        assign(file, patches, number)
        files.append(file)
    return [*files, *hooked(patches, ORIGINALS)]


def one_core(text: str, unifdef: Path) -> str:
    """Take out of C what is only there where both cores are."""
    if BOTH_CORES not in text:
        return text
    run = subprocess.run([unifdef, f"-U{BOTH_CORES}"], input=text, capture_output=True, text=True, check=False)
    if run.returncode > 1:
        raise Failure(f"unifdef: {run.stderr.strip()}; correct the #ifdef of {BOTH_CORES}")
    return re.sub(r"\n{3,}", "\n\n", run.stdout)


def _git(folder: Path, *arguments: str, **environment: str) -> str:
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", **environment})
    if run.returncode:
        raise Failure(f"git {arguments[0]}: {(run.stderr or run.stdout).strip().splitlines()[-1]}")
    return run.stdout.strip()


def figures() -> str:
    """The table of the committed benchmarks for the cover letter, with their revision."""
    text: list[str] = []
    for part in kept.read("load")["parts"]:
        text += [textwrap.fill(f"{part['heading']}, revision {part['setup']['revision']}: {part['obtained']}", 72), ""]
        for load in kept.loads_of(part):
            text.append(load["load"])
            for core, name in (("c", "C"), ("rust", "Rust")):
                bandwidth, tail = (kept.cell(load, core, what) for what in (DONTCACHE, kept.TAIL))
                text.append(f"  {name:4}  bandwidth {bandwidth:18} {kept.TAIL} {tail}".rstrip())
        text.append("")
    return "\n".join(text).rstrip()


def in_time(files: Sequence[Grown], patches: Sequence[Patch], folder: Path, unifdef: Path, who: Mapping[str, str]) -> None:
    """A repository with the touched files as they are before the first patch, and a commit for each patch."""
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch=series")
    messages = ["the kernel, as far as it is touched", *(f"{patch.subject}\n\n{patch.text.strip()}\n" for patch in patches)]
    for number, message in enumerate(messages):
        for file in files:
            text = file.at(number)
            if text is None:
                continue
            if number < len(patches) and file.name.endswith((".c", ".h")):
                text = one_core(text, unifdef)
            (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
            (folder / file.name).write_text(text)
        _git(folder, "add", "--all")
        _git(folder, "commit", "--quiet", "--message", message, **who)


def write(out: Path = OUT) -> list[Path]:
    """Write the patches and the cover letter; the folder appears whole."""
    cover, patches = read_plan()
    with tempfile.TemporaryDirectory(prefix="series.", dir=out.parent) as scratch:
        repository, made, unifdef = (Path(scratch) / name for name in ("git", "made", "unifdef"))
        with steps.only_one("kernel"):
            kernel.prepare()
            subprocess.run(["cc", "-O1", "-o", unifdef, paths.LINUX / "scripts" / "unifdef.c"], check=True)
            files = grow(patches)
        # The author and the date of our last commit.
        said = _git(paths.PROJECT, "log", "-1", "--format=%an%n%ae%n%aI").splitlines()
        known = dict(zip(("NAME", "EMAIL", "DATE"), said, strict=True))
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in known.items()}
        in_time(files, patches, repository, unifdef, who)
        _git(
            repository, "format-patch", "--quiet", "--no-renames", "--no-signature", "--full-index", "--cover-letter",
            f"--output-directory={made}", f"HEAD~{len(patches)}", **who,
        )  # fmt: skip
        letter = next(made.glob("0000-*"))
        text = letter.read_text().replace("*** SUBJECT HERE ***", cover["subject"])
        body = cover["text"].strip().replace("{figures}", figures())
        letter.write_text(text.replace("*** BLURB HERE ***", body))
        shutil.rmtree(out, ignore_errors=True)
        made.rename(out)
    return sorted(out.glob("*.patch"))


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    parser = Parser(prog="rust_writeback series", description=__doc__)
    parser.add_argument("--check", nargs="?", const="1", metavar="1", help="build after each patch, with and without the core")
    known = parser.parse_args(arguments)
    check_flags(known, "check")
    made = write()
    print(f"{OUT.relative_to(paths.PROJECT)}/: {len(made) - 1} patches and a cover letter")
    if known.check:
        from . import series_check

        return series_check.run(made)
    return 0
