# SPDX-License-Identifier: GPL-2.0
"""make conformance: test each promise of DONTCACHE on the C and on the Rust core.

A row is a script in tools/guest/conformance/: its name begins with the promise, its docstring says what is tried.
It ends with a line of JSON, {"kept": bool, "figures": str}, or was not run. If a row crashes the guest, that is the
row's result. The rows after it get a new guest. So do the rows after a broken promise, or after a row that could
not be run, because the guest may be broken, too. The command fails if Rust breaks a promise, or if a row was not
run on either core.
"""

import contextlib
import fnmatch
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from .. import paths
from ..bench import boots as machines, kept
from ..build import kernel
from ..build.variants import MEASURED, SANITIZERS, STACKS, Variant
from ..errors import Failure, Parser
from ..steps import write_whole
from ..tables import show
from ..vm import in_turn, machine
from . import power_cuts
from .guest_tests import GUEST, OPTIONS, Counts, options_for

ROWS = GUEST / "conformance"
CORES = {"c": "C", "rust": "Rust"}
SECONDS = 240
"""How long one row may take; it is slow without KVM, and slower with a sanitizer."""

PROMISES = ("no_oops", "exact_counter", "complete_drop", "no_lost_kick", "only_its_share", "bounded_wait")
"""What the name of a row begins with, which is what it promises."""

KEPT, BROKEN, HANG, WARNED, NOT_RUN = "kept", "broken", "hang", "warned", "not run"


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


POWER_CUTS = Row(
    "crash_safe_power_cuts", "crash safe", "The power is cut while writers run: data after a successful fsync must be there"
)
"""A row that no script in the guest can tell of, as it does not live to its end. It wants the kernel that is measured."""


def find_rows(patterns: Sequence[str] = (), variant: Variant | None = None, short: bool = False) -> list[Row]:
    """The rows that match a pattern, for this kernel or for all, in the order of the kernels and of the promises."""
    rows: list[Row] = []
    for promise in PROMISES:
        for script in sorted(ROWS.glob(f"{promise}_*.py")):
            text = script.read_text()
            tried = text.partition('"""')[2].partition("\n")[0].rstrip('."')
            marked = (f"{mark}=True" in text for mark in ("breaks_c", "stacks", "whole"))
            rows.append(Row(script.stem, promise.replace("_", " "), tried, *marked))
    rows = sorted([*rows, POWER_CUTS], key=lambda row: row.stacks)
    if variant is not None:
        rows = [row for row in rows if row.stacks == (variant == STACKS) and (row != POWER_CUTS or variant == MEASURED)]
    rows = [row for row in rows if not (short and row.whole)]
    return [row for row in rows if not patterns or any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns)]


def judge(row: in_turn.Ended) -> Result:
    """What came of a row in a guest. It is kept or broken only if it says so itself and exits accordingly."""
    if row.kind:
        return Result(NOT_RUN if row.kind == in_turn.EARLY else row.kind, row.reason, row.seconds)
    last = row.output.rstrip().rpartition("\n")[2] or "the row printed nothing"
    result = Result(NOT_RUN, f"exited with {row.status}; its last words: {last}", row.seconds)
    if row.status in in_turn.TIMED_OUT:
        result = Result(HANG, f"not done in time; its last words: {last}", row.seconds)
    elif row.status in (0, in_turn.SPOILT):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            told = json.loads(last)
            if told["kept"] is (row.status == 0):
                verdict = KEPT if told["kept"] else BROKEN
                result = Result(verdict, str(told["figures"]), row.seconds, told.get("each", {}))
    if row.warned:
        result = Result(WARNED, f"the kernel warned; {result.figures}", row.seconds)
    if result.verdict != KEPT:
        sys.stderr.write(row.output)
    return result


def run_rows(
    rows: Sequence[Row],
    core: str,
    short: bool = True,
    variant: Variant = MEASURED,
    cpus: int = OPTIONS.smp,
    setup: dict[str, str] | None = None,
) -> Results:
    """Rows on one core, in guests and from the host. setup hears of the machine.

    Those that depend on luck get less time if it is short.
    """
    results: Results = {}

    def tell(name: str, result: Result) -> None:
        results[name] = result
        print(f"{CORES[core]}: {name}: {result.verdict}: {result.figures} ({result.seconds:.0f} s)", flush=True)

    options = replace(options_for(variant), core=core, share=GUEST, smp=cpus)
    command = f"CONFORMANCE={'short' if short else 'whole'} PYTHONPATH=/share python3 -P $0.py 2>&1"
    names = [row.name for row in rows if row != POWER_CUTS]
    seconds = SECONDS * variant.slowness
    for boot in in_turn.run(options, "/share/conformance", command, seconds, names, lambda row: tell(row.script, judge(row))):
        if boot.complaint:
            name = in_turn.complained_in(boot)
            if name not in results:
                raise Failure(f"the kernel complained on {core}: {boot.complaint}; see {boot.console}")
            tell(name, replace(results[name], verdict=WARNED, figures=f"{boot.complaint}; {results[name].figures}"))
        if setup is not None:
            setup |= {"kernel": boot.kernel, "accelerator": boot.accel, "QEMU": boot.qemu_version}
    if POWER_CUTS in rows:
        cuts = power_cuts.run(6 if short else 50, core, variant.image)
        figures = "; ".join([f"{cuts.passed} of {cuts.passed + cuts.failed}", *cuts.problems])
        tell(POWER_CUTS.name, Result(BROKEN if cuts.failed else KEPT if cuts.passed else NOT_RUN, figures))
    return results


def count(results: Mapping[str, Results]) -> Counts:
    """Each row on each core. A promise that Rust breaks is a failure, and so is a row that was not run."""
    counts = Counts()
    for core, of_core in results.items():
        for name, result in of_core.items():
            if result.verdict == NOT_RUN or (core == "rust" and result.verdict != KEPT):
                counts.fail(f"conformance: {name} on {CORES[core]}: {result.verdict}: {result.figures}")
            else:
                counts.passed += 1
    return counts


def short(variant: Variant = MEASURED, patterns: Sequence[str] = ()) -> Counts:
    """The guest's rows on the Rust core, as far as they go in little time: a stage of make test."""
    rows = [row for row in find_rows(patterns, variant, short=True) if row != POWER_CUTS]
    return count({"rust": run_rows(rows, "rust", variant=variant)})


def main(arguments: list[str]) -> int:
    """Try the rows on both cores, print, write build/conformance/, judge."""
    parser = Parser(prog="conformance", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="rows like exact_counter_* only")
    parser.add_argument("--core", choices=CORES, action="append", help="try this core only")
    parser.add_argument("--short", action="store_true", help="as make test does: less time for luck")
    parser.add_argument("--sanitize", choices=SANITIZERS, metavar="NAME", help="on this sanitizer's kernel; no power is cut")
    parser.add_argument("--cpus", type=int, default=OPTIONS.smp, metavar="N", help="in guests with so many CPUs")
    parser.add_argument("--report", type=Path, help="where the table goes")
    options = parser.parse_args(arguments)
    variants = [SANITIZERS[options.sanitize]] if options.sanitize else [MEASURED, STACKS]
    report = options.report or paths.BUILD / f"conformance{variants[0].suffix}"
    chosen = {variant: find_rows(options.only, variant, options.short) for variant in variants}
    rows = [row for on_one in chosen.values() for row in on_one]
    if not rows:
        raise Failure(f"no row matches {' '.join(options.only)}; they are in tools/guest/conformance", 2)
    machine.polite()
    cores = [core for core in CORES if core in (options.core or CORES)]
    # Until a guest has told them; the one of a power cut does not.
    setup = machines.made() | {"kernel": "unknown", "accelerator": "unknown"}
    results: dict[str, Results] = {core: {} for core in cores}
    for variant in filter(chosen.get, variants):
        kernel.ensure(variant)
        for core in cores:
            results[core] |= run_rows(chosen[variant], core, options.short, variant, options.cpus, setup)
    setup["rows"] = "short" if options.short else "whole"
    told = [asdict(row) | {"results": {core: asdict(results[core][row.name]) for core in cores}} for row in rows]
    page = kept.conformance_page({"setup": {**setup, **kept.made_by(setup, "make conformance")}, "rows": told})
    show(page)
    write_whole(report / "conformance.md", page)
    write_whole(report / "conformance.json", json.dumps({"format": 1, "setup": setup, "rows": told}, indent=1) + "\n")
    return count(results).told()
