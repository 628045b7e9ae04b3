# SPDX-License-Identifier: GPL-2.0
"""make conformance: test each promise of DONTCACHE on the C and on the Rust core.

A row is a script in tools/guest/conformance/: its name begins with the promise, its docstring says what is tried.
It ends with a line of JSON, {"kept": bool, "figures": str}, or was not run. If a row crashes the guest, that is the
row's result. The rows after it get a new guest. So do the rows after a broken promise, or after a row that could
not be run, because the guest may be broken, too. The command fails if Rust breaks a promise, or if a row was not
run on either core.
"""

import ast
import fnmatch
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from .. import paths
from ..bench import boots as machines, kept
from ..build import kernel
from ..build.variants import MEASURED, STACKS, Variant, sanitizer
from ..errors import Failure, Parser, run_main
from ..steps import write_whole
from ..tables import show
from ..vm import emulated, in_turn, machine
from . import power_cuts
from .guest_tests import OPTIONS, Counts, options_for

GUEST = paths.TOOLS / "guest"
ROWS = GUEST / "conformance"
SECONDS = 240
"""How long one row may take; it is slow without KVM, and slower with a sanitizer."""

CORES = {"c": "C", "rust": "Rust"}

PROMISES = {
    "no_oops": "no oops",
    "exact_counter": "exact counter",
    "complete_drop": "complete drop",
    "no_lost_kick": "no lost kick",
    "only_its_share": "only its share",
    "bounded_wait": "bounded wait",
}
"""What the name of a row begins with, and what it promises."""

KEPT, BROKEN, HANG, WARNED, NOT_RUN = "kept", "broken", "hang", "warned", "not run"

FOLDER = "/share/conformance"
"""Where a guest has the rows."""


@dataclass(frozen=True)
class Row:
    """A promise, and what is tried to break it."""

    name: str
    promise: str
    tried: str
    breaks_c: bool = False
    """Is it known to break C? Then it has to, or it proves nothing."""
    stacks: bool = False
    """Does it need the kernel with what people put between a file system and a drive?"""
    whole: bool = False
    """Is it no part of make test, because it compares times?"""


@dataclass(frozen=True)
class Result:
    """What came of a row on one core: a verdict, the figures or words behind it, the seconds it took."""

    verdict: str
    figures: str
    seconds: float = 0.0
    each: dict[str, str] = field(default_factory=dict)
    """The places where it was tried, each with what was wrong there."""


Results = dict[str, Result]
"""By the name of the row."""


def of_counts(counts: Counts) -> Result:
    """What came of a row that is many cases."""
    run = counts.passed + counts.failed
    figures = "; ".join([f"{counts.passed} of {run}", *counts.problems])
    return Result(NOT_RUN if not run else BROKEN if counts.failed else KEPT, figures)


POWER_CUTS = Row(
    "crash_safe_power_cuts", "crash safe", "The power is cut while writers run: data after a successful fsync must be there"
)
"""A row that no script in the guest can tell of, as it does not live to its end. It wants the kernel that is measured."""


def find_rows(patterns: Sequence[str] = (), *variants: Variant) -> list[Row]:
    """The rows for these kernels or the measured one: all, or those whose name matches a pattern. There has to be one."""
    rows = [row for variant in variants or [MEASURED] for row in rows_of(variant, patterns)]
    if not rows:
        raise Failure(f"no row matches {' '.join(patterns)}; see all rows with --list")
    return rows


def rows_of(variant: Variant, patterns: Sequence[str] = ()) -> list[Row]:
    """The same for a kernel, in the order of the promises. There may be none."""
    rows: list[Row] = []
    for prefix, promise in PROMISES.items():
        for script in sorted(ROWS.glob(f"{prefix}_*.py")):
            tree = ast.parse(script.read_text())
            said = ast.get_docstring(tree)
            if not said:
                raise Failure(f"tools/guest/conformance/{script.name} has no docstring; say there what it tries")
            marks = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
            marked = (mark in marks for mark in ("breaks_c", "stacks", "whole"))
            rows.append(Row(script.stem, promise, said.splitlines()[0].rstrip("."), *marked))
    rows += [POWER_CUTS] if variant == MEASURED else []
    rows = [row for row in rows if row.stacks == (variant == STACKS)]
    return [row for row in rows if not patterns or any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns)]


def judge(output: str, status: int) -> tuple[str, str]:
    """The verdict of a row that has ended, by itself or because its time was over, and its figures."""
    lines = output.split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "the row printed nothing")
    if status in in_turn.TIMED_OUT:
        return HANG, f"not done in time; its last words: {last}"
    try:
        told = json.loads(last)
        kept, figures = told["kept"], str(told["figures"])
    except (ValueError, KeyError, TypeError):
        return NOT_RUN, last
    if not isinstance(kept, bool) or status != (0 if kept else in_turn.SPOILT):
        return NOT_RUN, f"exited with {status}"
    return KEPT if kept else BROKEN, figures


def places(output: str) -> dict[str, str]:
    """The places of a row that has told its verdict, each with what was wrong there."""
    told = json.loads(output.strip().split("\n")[-1])
    return {str(name): str(wrong) for name, wrong in told.get("each", {}).items()}


def result(row: in_turn.Ended) -> Result:
    """What came of a row that a guest has run."""
    if row.kind:
        return Result(NOT_RUN if row.kind == in_turn.EARLY else row.kind, row.reason, row.seconds)
    verdict, figures = judge(row.output, row.status)
    if row.warned:
        verdict, figures = WARNED, f"the kernel warned; {figures}"
    if verdict != KEPT:
        sys.stderr.write(row.output)
    return Result(verdict, figures, row.seconds, places(row.output) if verdict in (KEPT, BROKEN) else {})


@dataclass(frozen=True)
class Machine:
    """The core, kernel and CPUs that rows run on; short gives rows that depend on luck less time."""

    core: str
    short: bool
    variant: Variant = MEASURED
    cpus: int = OPTIONS.smp


def run_inside(on: Machine, rows: Sequence[Row], setup: dict[str, str], boots: emulated.Boots) -> Results:
    """Rows in guests; setup hears of the machine, and boots are counted."""
    results: Results = {}

    def ended(row: in_turn.Ended) -> None:
        results[row.script] = of_it = result(row)
        print(f"{CORES[on.core]}: {row.script}: {of_it.verdict}: {of_it.figures} ({of_it.seconds:.0f} s)", flush=True)

    options = replace(options_for(on.variant), core=on.core, share=GUEST, smp=on.cpus)
    seconds = SECONDS * on.variant.slowness
    command = f"CONFORMANCE={'short' if on.short else 'whole'} PYTHONPATH=/share python3 -P $0.py 2>&1"
    names = [row.name for row in rows]
    for boot in in_turn.run(options, FOLDER, command, seconds, names, ended, boots):
        booted = boot.result
        if boot.complaint:
            name = boot.complained_in()
            if name not in results:
                raise Failure(f"the kernel complained on {on.core}: {boot.complaint}; see {booted.console}")
            figures = f"{boot.complaint}; {results[name].figures}"
            results[name] = replace(results[name], verdict=WARNED, figures=figures)
            print(f"{CORES[on.core]}: {name}: {WARNED}: {figures}", flush=True)
        setup |= {"kernel": booted.kernel, "accelerator": booted.accel, "QEMU": booted.qemu_version}
    return {row.name: results[row.name] for row in rows}


def run_rows(on: Machine, rows: Sequence[Row], setup: dict[str, str], boots: emulated.Boots) -> Results:
    """All rows on one core, in the guest and from the host."""
    inside = [row for row in rows if row != POWER_CUTS]
    results = run_inside(on, inside, setup, boots) if inside else {}
    if POWER_CUTS in rows:
        counts = power_cuts.run(6 if on.short else 50, on.core, kernel=on.variant.image)
        results[POWER_CUTS.name] = of_counts(counts)
        boots.add(counts.boots)
    return results


def problems(results: Mapping[str, Results]) -> list[str]:
    """What makes the command fail: a promise that Rust breaks, a row that was not run."""
    return [
        f"{name} on {CORES[core]}: {result.verdict}: {result.figures}"
        for core, of_core in results.items()
        for name, result in of_core.items()
        if result.verdict == NOT_RUN or (core == "rust" and result.verdict != KEPT)
    ]


def short(variant: Variant = MEASURED, patterns: Sequence[str] = ()) -> Counts:
    """The guest's rows on the Rust core, as far as they go in little time: a stage of make test."""
    counts = Counts()
    rows = [row for row in find_rows(patterns, variant) if row != POWER_CUTS and not row.whole]
    results = run_rows(Machine("rust", True, variant), rows, {}, counts.boots)
    for problem in problems({"rust": results}):
        counts.fail(f"conformance: {problem}")
    counts.passed = len(rows) - counts.failed
    return counts


def main(arguments: list[str]) -> int:
    """Try the rows on both cores, print, write build/conformance/, judge."""
    parser = Parser(prog="conformance", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="rows like exact_counter_* only")
    parser.add_argument("--list", action="store_true", help="say what rows there are")
    parser.add_argument("--core", choices=CORES, action="append", help="try this core only")
    parser.add_argument("--short", action="store_true", help="as make test does: less time for luck")
    parser.add_argument("--sanitize", metavar="NAME", help="on this sanitizer's kernel; no power is cut")
    parser.add_argument("--cpus", type=int, default=OPTIONS.smp, metavar="N", help="in guests with so many CPUs")
    parser.add_argument("--report", type=Path, help="where the table goes")
    options = parser.parse_args(arguments)
    variants = [sanitizer(options.sanitize)] if options.sanitize else [MEASURED, STACKS]
    report = options.report or paths.BUILD / f"conformance{variants[0].suffix}"
    rows = [row for row in find_rows(options.only, *variants) if not (options.short and row.whole)]
    if options.list:
        for row in rows:
            print(f"{row.name:40} {row.promise}: {row.tried}")
        return 0
    machine.polite()
    cores = [core for core in CORES if core in (options.core or CORES)]
    # Until a guest has told them; the one of a power cut does not.
    setup = machines.made() | {"kernel": "unknown", "accelerator": "unknown"}
    boots = emulated.Boots()
    results: dict[str, Results] = {core: {} for core in cores}
    for variant in variants:
        if not (chosen := [row for row in rows if row.stacks == (variant == STACKS)]):
            continue
        kernel.ensure(variant)
        for core in cores:
            results[core] |= run_rows(Machine(core, options.short, variant, options.cpus), chosen, setup, boots)
    setup |= {"rows": "short" if options.short else "whole", "QEMU died in": boots.told()}
    told = [asdict(row) | {"results": {core: asdict(results[core][row.name]) for core in cores}} for row in rows]
    document = {"format": 1, "setup": setup, "rows": told}
    page = kept.conformance_page({"setup": {**setup, **kept.made_by(setup, "make conformance")}, "rows": told})
    show(page)
    write_whole(report / "conformance.md", page)
    write_whole(report / "conformance.json", json.dumps(document, indent=1) + "\n")
    wrong = problems(results)
    for problem in wrong:
        print(f"failed: {problem}", flush=True)
    for core, of_core in results.items():
        print(f"{CORES[core]}: {sum(result.verdict == KEPT for result in of_core.values())} of {len(rows)} rows kept")
    if boots.deaths:
        print(f"QEMU died in {boots.told()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(run_main(lambda: main(sys.argv[1:])))
