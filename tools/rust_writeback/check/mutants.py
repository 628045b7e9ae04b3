# SPDX-License-Identifier: GPL-2.0
"""make mutants: each row of make conformance that C keeps must fail on a Rust core that breaks its rule.

A row proves something only if it can fail. A row that C breaks has failed there. For the other rows
tools/mutants.toml has a line of the core to replace. Rules that are no promise have guest tests that must fail.
Each replacement is compiled into a kernel of its own, whose build stays warm. The changed file lies above the one in
the kernel tree while make runs, in a private mount namespace. Neither the work tree nor the kernel tree changes.

The command fails if a row keeps its promise or a test passes despite the mutant, if a row or a test could not be
run, if the result differs from the one in tools/mutants.toml, or if a mutant does not apply or does not build.
"""

import ast
import fnmatch
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import paths, steps
from ..build import kernel, overlay, wiring
from ..build.variants import Variant
from ..errors import Failure, Parser
from ..tables import markdown, show
from ..vm import emulated, machine
from . import conformance, guest_tests
from .conformance import BROKEN, HANG, KEPT, Machine, NOT_RUN, Result, Row, WARNED
from .guest_tests import Counts, options_for

LIST = paths.TOOLS / "mutants.toml"
KERNEL = Variant(copy="mutants")
ABOVE = paths.BUILD / "mutants"
"""The files that were ever changed, as they are to be compiled now. What is changed back gets a new
time here, so that make compiles it again."""

VERDICTS = (BROKEN, HANG, WARNED, *emulated.STATUS)
"""What a row may come to that does not keep its promise; the last are deaths of the guest."""

SURVIVED, NOT_APPLIED, NOT_BUILT = "survived", "does not apply", "does not build"


@dataclass(frozen=True)
class Mutant:
    """A line of the core to replace, the rule that this breaks, and what has to find it."""

    name: str
    rule: str
    file: str
    find: str
    replace: str
    rows: tuple[str, ...] = ()
    """of make conformance"""
    tests: tuple[str, ...] = ()
    """of the guest: file:case, without .py. The case has to fail"""
    verdict: str = BROKEN
    whole: bool = False
    """Do the rows need all of their time? They have less as a rule, as in make test."""

    @property
    def finders(self) -> tuple[str, ...]:
        """All that has to find it."""
        return self.rows + self.tests

    def place(self) -> str:
        """Where its file is in the kernel tree: one of ours, or one of the kernel's with hooks of ours."""
        if place := overlay.read_allowlist().get(self.file):
            return place
        if any(self.file in wiring.touched(patch) for patch in wiring.patches()):
            return self.file
        raise Failure(f"{self.name}: {self.file} is neither in overlay.toml nor changed by a wiring patch; correct it")

    def apply(self, content: str) -> str:
        """The content of its file with the line replaced, which has to be there once."""
        found = content.count(self.find)
        if found != 1:
            raise Failure(f"{self.name}: find has to be in {self.file} once, not {found} times: {self.find.strip()}")
        return content.replace(self.find, self.replace)


def read(path: Path = LIST, rows: Sequence[str] = (), tests: Sequence[str] = ()) -> dict[str, Mutant]:
    """The list by its names, checked; it may name these rows and guest tests."""
    document = tomllib.loads(path.read_text())
    if unknown := document.keys() - {"mutants"}:
        raise Failure(f"{path.name} has {', '.join(sorted(unknown))}; only mutants is allowed")
    mutants = {name: _mutant(path.name, name, entry) for name, entry in document.get("mutants", {}).items()}
    for mutant in mutants.values():
        for row in mutant.rows:
            if row not in rows:
                raise Failure(
                    f"{path.name}: {mutant.name} names the row {row}, which does not exist;"
                    " see make conformance ARGS=--list"
                )
        for test in mutant.tests:
            if test not in tests:
                raise Failure(f"{path.name}: {mutant.name} names {test}; tools/guest/tests has no such file:case")
    return mutants


def listed(rows: Iterable[Row]) -> dict[str, Mutant]:
    """All that there are, which these rows and the guest tests have to find."""
    return read(rows=[row.name for row in rows], tests=[*_cases()])


def _cases() -> Iterator[str]:
    """All guest tests."""
    for script in guest_tests.find_scripts([]):
        for part in ast.parse(script.read_text()).body:
            if isinstance(part, ast.FunctionDef):
                yield f"{script.stem}:{part.name}"


def _mutant(where: str, name: str, entry: Mapping[str, object]) -> Mutant:
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    types = {"rows": list, "tests": list, "whole": bool}
    if wrong := [key for key, value in entry.items() if not isinstance(value, types.get(key, str))]:
        raise Failure(f"{where}: {name}: {' and '.join(wrong)} has the wrong type; correct it")
    try:
        mutant = Mutant(name, **given)  # type: ignore[arg-type]
    except TypeError as error:
        raise Failure(f"{where}: {name}: {error}; correct it") from None
    if not mutant.finders or not mutant.find.strip() or mutant.find == mutant.replace:
        raise Failure(f"{where}: {name} has an empty find, the same find and replace, or no rows and tests; correct it")
    if mutant.verdict not in VERDICTS:
        raise Failure(f"{where}: {name} has verdict = {mutant.verdict!r}; allowed: {', '.join(VERDICTS)}")
    return mutant


def uncovered(rows: Sequence[Row], mutants: Iterable[Mutant]) -> list[str]:
    """The rows that neither break C nor have a mutant."""
    covered = {name for mutant in mutants for name in mutant.rows}
    return [row.name for row in rows if not row.breaks_c and row.name not in covered]


def choose(mutants: Iterable[Mutant], patterns: Sequence[str]) -> list[Mutant]:
    """The mutants whose name matches a pattern, and of the others those rows and tests that do."""

    def matches(name: str) -> bool:
        return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)

    found = [
        mutant
        if matches(mutant.name)
        else replace(mutant, rows=tuple(filter(matches, mutant.rows)), tests=tuple(filter(matches, mutant.tests)))
        for mutant in mutants
    ]
    return [mutant for mutant in found if mutant.finders]


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


def of_test(counts: Counts, case: str) -> Result:
    """What came of the case of a guest test. To die, or to make the kernel warn, is not to have found the mutant."""
    result = conformance.of_counts(counts)
    if counts.untold or result.verdict == NOT_RUN:
        return replace(result, verdict=NOT_RUN)
    return replace(result, verdict=BROKEN if case in counts.cases else KEPT)


def attempt(mutant: Mutant, boots: emulated.Boots) -> dict[str, Result]:
    """What its rows and tests say on the mutant, each in a guest of its own."""
    results: dict[str, Result] = {}
    for test in mutant.tests:
        script, case = test.split(":")
        counts = guest_tests.run_core("rust", [guest_tests.TESTS / f"{script}.py"], options_for(KERNEL), quiet=True)
        boots.add(counts.boots)
        results[test] = of_test(counts, case)
    for row in conformance.find_rows(mutant.rows) if mutant.rows else ():
        try:
            results |= conformance.run_rows(Machine("rust", not mutant.whole, KERNEL), [row], {}, boots)
        except Failure as failure:
            results[row.name] = Result(NOT_RUN, str(failure))
    return results


def judge(mutant: Mutant, result: Result) -> str:
    """What is wrong with what a row has said; nothing if it has found the mutant."""
    if result.verdict == mutant.verdict:
        return ""
    if result.verdict == KEPT:
        return SURVIVED
    return "could not be run" if result.verdict == NOT_RUN else f"is not {mutant.verdict} but {result.verdict}"


Line = tuple[Mutant, str, Result]
"""A mutant, a row or a test, and what that said."""


def run(
    mutants: Sequence[Mutant], make: Callable[[Mutant], None], told_by: Callable[[Mutant], Mapping[str, Result]]
) -> tuple[list[Line], list[str]]:
    """Make each mutant and have it found: the lines of the table, and what was wrong."""
    lines: list[Line] = []
    problems: list[str] = []

    def failed(mutant: Mutant, what: str, why: object) -> None:
        lines.extend((mutant, name, Result(what, "")) for name in mutant.finders)
        problems.append(f"{mutant.name} {what}: {why}")

    for mutant in mutants:
        try:
            mutant.apply((paths.LINUX / mutant.place()).read_text())
        except (Failure, OSError) as failure:
            failed(mutant, NOT_APPLIED, failure)
            continue
        try:
            make(mutant)
        except Failure as failure:
            failed(mutant, NOT_BUILT, failure)
            continue
        results = told_by(mutant)
        for name in mutant.finders:
            result = results.get(name, Result(NOT_RUN, "nothing was told of it"))
            lines.append((mutant, name, result))
            if wrong := judge(mutant, result):
                problems.append(f"{mutant.name}: {name} {wrong}: {result.figures}")
    return lines, problems


def page(lines: Sequence[Line]) -> str:
    """The table."""
    rows = [
        [mutant.name, mutant.rule, name, f"{result.verdict}: {result.figures}" if result.figures else result.verdict]
        for mutant, name, result in lines
    ]
    return markdown(("mutant", "rule", "row or test", "said"), rows, 4)


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    parser = Parser(prog="mutants", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="mutants, rows or tests like walk_* only")
    parser.add_argument("--list", action="store_true", help="say what mutants there are")
    options = parser.parse_args(arguments)
    rows = conformance.find_rows()
    every = listed(rows)
    wanted = options.only or ["*"]
    mutants = choose(every.values(), wanted)
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name:32} {mutant.rule}: {', '.join(mutant.finders)}")
        return 0
    if not mutants:
        raise Failure(f"no mutant matches {' '.join(wanted)}; see all mutants with --list")
    machine.polite()
    with steps.only_one("kernel"):
        tree = kernel.prepare()
        kernel.configure(tree, KERNEL)
    boots = emulated.Boots()
    lines, problems = run(mutants, lambda mutant: build(mutant, tree), lambda mutant: attempt(mutant, boots))
    if not options.only:
        problems += [f"{row} neither breaks C nor has a mutant" for row in uncovered(rows, every.values())]
    show(page(lines))
    for problem in problems:
        print(f"failed: {problem}", flush=True)
    print(f"{sum(not judge(mutant, result) for mutant, _, result in lines)} of {len(lines)} found")
    if boots.deaths:
        print(f"QEMU died in {boots.told()}")
    return 1 if problems else 0
