# SPDX-License-Identifier: GPL-2.0
"""make test: run the tests of CI, from the quickest to the slowest, and print one sum. make nightly: run the others.

The last line is the sum. build/junit.xml has the stages. A stage that breaks down counts as a failure. The other
stages still run.
"""

import time
import traceback
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence

from .. import arch, paths
from ..arch import ARM64
from ..bench import full
from ..build import arm64, kernel, series
from ..build.variants import MEASURED, SANITIZERS, Variant, of_arch
from ..errors import Failure, Parser, check_flags
from ..steps import write_whole
from ..vm.options import CORES
from . import compile_fail, conformance, guest_tests, host_tests, kunit, lint, litmus, power_cuts, price, unchanged
from .guest_tests import Counts

Stage = tuple[str, Callable[[], Counts]]


def _kernel(variant: Variant = MEASURED) -> Counts:
    kernel.ensure(variant)
    return Counts(passed=1)


def on_kernel(
    variant: Variant, with_it: str, rows: Sequence[str], names: Sequence[str] = (), cores: Sequence[str] = ("rust",)
) -> list[Stage]:
    """Build a kernel, and run guest tests and what tries the promises on it."""
    return [
        (f"kernel{with_it}", lambda: _kernel(variant)),
        (f"guest tests{with_it}", lambda: guest_tests.run(names, cores, variant)),
        (f"what DONTCACHE promises{with_it}", lambda: conformance.short(variant, rows)),
    ]


def _command(main: Callable[[list[str]], int], *arguments: str) -> Counts:
    """A command of its own as a stage."""
    counts = Counts()
    failed = main([*arguments])
    counts.judge(" ".join([main.__module__, *arguments]), "failed; the lines above say what" if failed else None)
    return counts


BENCH = paths.BUILD / "bench-test"

NOT_ON_RT = """
    complete_drop_formats exact_counter_split no_oops_collapse
    exact_counter_domain no_lost_kick_domain
    only_its_share_gathered only_its_share_turn
""".split()
"""Rows that need large folios; whose real-time task keeps RCU from a CPU; that need a kernel without debugging."""


def sanitized(variant: Variant, names: Sequence[str] = ()) -> list[Stage]:
    """On the kernel of a sanitizer, all guest tests or these. On PREEMPT_RT bios end in threads, and locks sleep."""
    if variant.name == "rt":
        rows = [row.name for row in conformance.find_rows((), variant, short=True) if row.name not in NOT_ON_RT]
        return [("KUnit on PREEMPT_RT", lambda: kunit.run(kunit.RT)), *on_kernel(variant, " with rt", rows, names)]
    return on_kernel(variant, f" with {variant.name}", ("exact_counter_*",), names, CORES)


def elsewhere(variant: Variant, there: str = "") -> list[Stage]:
    """On another architecture, on the Rust core."""
    return [(f"KUnit{there}", lambda: kunit.run(kunit.arm64(variant.pages))), *on_kernel(variant, there, ())]


STAGES: list[Stage] = [
    ("tests of the pure core", host_tests.cargo),
    ("models of the protocols", host_tests.loom),
    ("kernel", _kernel),
    ("orders under the kernel's memory model", litmus.run),
    ("tests of the tools", host_tests.pytest),
    ("lint", lint.run),
    ("misuse that must not compile", compile_fail.run),
    ("hooks that must leave no trace", unchanged.run),
    ("KUnit", kunit.run),
    ("guest tests", lambda: guest_tests.run(cores=("rust",))),
    ("price of a write", price.run),
    # The whole of a benchmark, as short as it gets: two guests, three modes, the tables and the pages.
    ("one pair of one load", lambda: _command(full.main, "--only=small-4k/xfs", "--pairs=1", f"--report={BENCH}")),
    ("power cuts", power_cuts.run),
    ("what DONTCACHE promises", conformance.short),
]
"""Of each kernel that takes minutes to build, there is one: the machine of CI may be slow."""


HOST = ("tests of the pure core", "models of the protocols", "orders under the kernel's memory model", "tests of the tools")
"""The tests that need no guest."""

CHECK = ("tests of the pure core", "kernel", "lint", "misuse that must not compile", "KUnit")
"""The stages before a commit, besides guest tests."""


def nightly() -> list[Stage]:
    """What CI has no time for: every kernel, more CPUs, and what the stages of CI shorten."""
    stages: list[Stage] = [
        ("objects for arm64", arm64.run),
        ("KUnit with one core", lambda: kunit.run(kunit.ONE_CORE)),
        ("kernel", _kernel),
        ("guest tests on both cores with eight CPUs", lambda: guest_tests.run(smp=8)),
        ("counter with eight CPUs", lambda: _command(conformance.main, "--cpus=8", "--only=exact_counter_*")),
        ("all that DONTCACHE promises", lambda: _command(conformance.main)),
        ("each patch of the series", lambda: _command(series.main, "--check")),
    ]
    for variant in SANITIZERS.values():
        stages += sanitized(variant)
    for pages in arm64.SIZES:
        stages += elsewhere(of_arch(ARM64, pages), f" on arm64 with pages of {pages}")
    return stages


def part(name: str, only: str | None) -> list[Stage]:
    """Some of the stages: check, host, or guest tests of that name; or those of the night."""
    if name == "nightly":
        return nightly()
    if name == "guest":
        return [("kernel", _kernel), ("guest tests", lambda: guest_tests.run((only or "",)))]
    stages = [stage for stage in STAGES if stage[0] in (HOST if name == "host" else CHECK)]
    if name == "check":
        stages.append(("guest tests", lambda: guest_tests.run((only or "dontcache_[pw]",), ("rust",))))
    return stages


def run_stage(name: str, stage: Callable[[], Counts]) -> Counts:
    """Run one stage; whatever stops it is a failure of that stage."""
    print(f"== {name}", flush=True)
    start = time.monotonic()
    try:
        counts = stage()
        if not counts.passed + counts.failed + counts.skipped:
            counts.fail(f"{name}: ran no test")
    except Exception as error:
        if not isinstance(error, Failure):
            traceback.print_exc()
        counts = Counts()
        counts.fail(f"{name}: {error}")
    took = counts.seconds = time.monotonic() - start
    print(f"== {name}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped in {took:.0f} s", flush=True)
    return counts


JUNIT = paths.BUILD / "junit.xml"


def write_junit(results: dict[str, Counts]) -> None:
    """The stages as test suites of JUnit. Only failures have names: the kernel's parsers count the rest."""
    suites = ElementTree.Element("testsuites")
    for name, counts in results.items():
        run = counts.passed + counts.failed + counts.skipped
        numbers = {"tests": run, "failures": counts.failed, "skipped": counts.skipped, "time": round(counts.seconds)}
        told = {key: str(number) for key, number in numbers.items()}
        suite = ElementTree.SubElement(suites, "testsuite", told, name=name)
        for nr, problem in enumerate(counts.problems or [""]):
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=f"problem {nr}" if problem else "all")
            if problem:
                ElementTree.SubElement(case, "failure", message=problem)
    write_whole(JUNIT, ElementTree.tostring(suites, encoding="unicode") + "\n")


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    parser = Parser(prog="rust_writeback test", description=__doc__)
    parser.add_argument("--sanitize", choices=SANITIZERS, metavar="NAME", help="only guest tests, on the kernel of this sanitizer")
    parser.add_argument("--rt", nargs="?", const="1", metavar="1", help="only guest tests and promises, on PREEMPT_RT")
    parser.add_argument("--part", choices=("check", "host", "guest", "nightly"), help="these stages instead")
    parser.add_argument("--only", metavar="PATTERN", help="of the guest tests, those of this name")
    parser.add_argument("--arch", help=f"on an emulated machine of this architecture: {', '.join(arch.ARCHES)}")
    parser.add_argument("--pages", help="the size of its pages, where that may be chosen")
    known = parser.parse_args(arguments)
    check_flags(known, "rt")
    if known.only:
        guest_tests.find_scripts([known.only])
    stages = part(known.part, known.only) if known.part else STAGES
    variant = of_arch(*arch.chosen(known.arch, known.pages))
    if (known.sanitize is not None) + bool(known.rt) + (variant != MEASURED) > 1:
        raise Failure("SANITIZE, RT and ARCH=arm64 need different kernels; give one of them", 2)
    if variant != MEASURED:
        stages = elsewhere(variant)
    if known.sanitize is not None or known.rt:
        stages = sanitized(SANITIZERS["rt" if known.rt else known.sanitize], [known.only] if known.only else [])
        print("== only the tests that use this kernel", flush=True)
    total = Counts()
    results: dict[str, Counts] = {}
    for name, stage in stages:
        results[name] = run_stage(name, stage)
        total.add(results[name])
        write_junit(results)
    return total.told()
