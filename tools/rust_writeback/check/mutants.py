# SPDX-License-Identifier: GPL-2.0
"""make mutants: each row of make conformance that C keeps must fail on a Rust core that breaks its rule.

A row proves something only if it can fail. A row that C breaks has failed there. For the other rows
tools/mutants.toml has a line of the core to replace. Each replacement is compiled into a kernel of its own, whose build
stays warm. The changed file lies above the one in the kernel tree while make runs, in a private mount namespace.
Neither the work tree nor the kernel tree changes.

The command fails if a row keeps its promise despite the mutant, if a row could not be run, if the result differs from
the one in tools/mutants.toml, or if a mutant does not apply or does not build.
"""

import fnmatch
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from .. import paths, steps
from ..build import kernel, overlay
from ..build.variants import MEASURED, Variant
from ..errors import Failure, Parser
from ..vm import machine
from . import conformance
from .conformance import BROKEN, KEPT, NOT_RUN, Result
from .guest_tests import Counts

LIST = paths.TOOLS / "mutants.toml"
KERNEL = Variant(copy="mutants")
ABOVE = paths.BUILD / "mutants"
"""The files that were ever changed, as they are to be compiled now. What is changed back gets a new
time here, so that make compiles it again."""


@dataclass(frozen=True)
class Mutant:
    """A line of the core to replace, the rule that this breaks, and what has to find it."""

    name: str
    rule: str
    file: str
    find: str
    replace: str
    rows: list[str] = field(default_factory=list)
    """Of make conformance, which have to find it."""
    verdict: str = BROKEN
    whole: bool = False
    """Do the rows need all of their time? They have less as a rule, as in make test."""

    def place(self) -> str:
        """Where its file is in the kernel tree: one of ours, or one of the kernel's."""
        return overlay.read_allowlist().get(self.file, self.file)

    def apply(self, content: str) -> str:
        """The content of its file with the line replaced, which has to be there once."""
        found = content.count(self.find)
        if found != 1:
            raise Failure(f"{self.name}: find has to be in {self.file} once, not {found} times: {self.find.strip()}")
        return content.replace(self.find, self.replace)


def read(path: Path = LIST) -> list[Mutant]:
    """The list, checked: each row that has to find a mutant exists."""
    mutants = [Mutant(name, **entry) for name, entry in tomllib.loads(path.read_text())["mutants"].items()]
    known = {row.name for row in conformance.find_rows(variant=MEASURED)}
    for mutant in mutants:
        unknown = sorted({*mutant.rows} - known)
        if unknown or not mutant.rows:
            raise Failure(f"{path.name}: {mutant.name} names {' '.join(unknown) or 'nothing'}; name rows that exist")
    return mutants


def lay(mutant: Mutant, above: Path = ABOVE, tree: Path = paths.LINUX) -> list[tuple[Path, Path]]:
    """Have all that was ever changed as it is in the tree, but for the mutant's line; what lies above what."""
    place = mutant.place()
    changed = mutant.apply((tree / place).read_text())
    earlier = {str(path.relative_to(above)) for path in above.rglob("*") if path.is_file()}
    for name in sorted(earlier | {place}):
        if not (tree / name).is_file():
            (above / name).unlink()
            continue
        steps.write_if_changed(above / name, changed if name == place else (tree / name).read_bytes())
    return [(path, tree / path.relative_to(above)) for path in sorted(above.rglob("*")) if path.is_file()]


COVER = 'while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done; shift; exec "$@"'


def build(mutant: Mutant, tree: str) -> None:
    """Compile the mutant, incrementally."""
    with steps.only_one("kernel"):
        pairs = lay(mutant)
        words = [str(path) for pair in pairs for path in pair]
        inside = ["unshare", "--mount", "sh", "-euc", COVER, "mutants", *words, "--"]
        kernel.build(steps.digest(tree, *(path for path, _ in pairs)), KERNEL, inside)


def attempt(mutant: Mutant, tree: str) -> dict[str, Result]:
    """What its rows say on the mutant, each in a guest of its own."""
    results: dict[str, Result] = {}
    for row in conformance.find_rows(mutant.rows):
        try:
            build(mutant, tree)
            results |= conformance.run_rows([row], "rust", not mutant.whole, KERNEL)
        except Failure as failure:
            results[row.name] = Result(NOT_RUN, str(failure))
    return results


def wrong(mutant: Mutant, result: Result) -> str:
    """What is wrong with what a row has said; nothing if it has found the mutant."""
    if result.verdict == mutant.verdict != KEPT:
        return ""
    return "survived" if result.verdict == KEPT else f"is not {mutant.verdict} but {result.verdict}"


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    parser = Parser(prog="mutants", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="mutants or rows like walk_* only")
    options = parser.parse_args(arguments)
    patterns = options.only or ["*"]
    mutants = [one for one in read() if any(fnmatch.filter([one.name, *one.rows], pattern) for pattern in patterns)]
    if not mutants:
        raise Failure(f"no mutant matches {' '.join(options.only)}; they are in tools/{LIST.name}", 2)
    machine.polite()
    with steps.only_one("kernel"):
        tree = kernel.prepare()
        kernel.configure(tree, KERNEL)
    counts = Counts()
    for mutant in mutants:
        for name, result in attempt(mutant, tree).items():
            why = wrong(mutant, result)
            counts.judge(f"{mutant.name}: {mutant.rule}: {name}", f"{why}: {result.figures}" if why else None)
    return counts.told()
