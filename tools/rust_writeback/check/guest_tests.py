# SPDX-License-Identifier: GPL-2.0
"""Run tools/guest/tests/test_*.py in the virtual machine, on both cores.

On the kernel of a sanitizer a separate guest comes first. It makes a mistake that the sanitizer has to report.
Another script comes last. It asks the sanitizer what it has found, and whether it still works.

Each script reports its cases as KTAP, which the kernel's own parser reads. A script fails if it dies, reports
nothing, reports fewer cases than it planned, or makes the kernel warn.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from .. import paths
from ..build.variants import MEASURED, SANITIZERS, Variant
from ..errors import Failure
from ..vm import emulated, in_turn
from ..vm.options import CORES

GUEST = paths.TOOLS / "guest"
TESTS = GUEST / "tests"
SECONDS = 900
"""How long one script may take; it is slow without KVM."""

OPTIONS = emulated.VmOptions(smp=4, nvme=emulated.NvmeOptions(queues=1))
"""One queue: the drive's interrupts come to one CPU, whoever submits."""

SANITIZER = TESTS / "sanitizer.py"
"""The script that comes last."""

@dataclass
class Counts:
    """How many cases ended how, and in words what was wrong."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = field(default=0, compare=False)
    """How long a stage took."""

    def add(self, other: Counts) -> None:
        """Take in the counts of another part of the run."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.problems += other.problems

    def fail(self, problem: str) -> None:
        """Count a failure that no case told of."""
        self.failed += 1
        self.problems.append(problem)

    def judge(self, name: str, wrong: str | None) -> None:
        """Count one that passed unless something is wrong with it, and print it."""
        print(f"{name}: {wrong or 'ok'}", flush=True)
        if wrong:
            self.fail(f"{name}: {wrong}")
        else:
            self.passed += 1

    def told(self) -> int:
        """Print all problems and the sum. Returns the status of a command: it fails if nothing has passed, too."""
        for problem in self.problems:
            print(f"failed: {problem}")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed or not self.passed else 0


def _kunit(module: str) -> Any:
    folder = str(paths.LINUX / "tools" / "testing" / "kunit")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(module)


def _failed(test: Any) -> Iterator[str]:
    """The names of the cases below that failed."""
    if not test.subtests and not test.ok_status():
        yield test.name
    for part in test.subtests:
        yield from _failed(part)


def parse(name: str, output: str, status: int) -> Counts:
    """The counts of one script's output and exit status."""
    printer = _kunit("kunit_printer").Printer(output=sys.stdout)
    test = _kunit("kunit_parser").parse_run_tests(output.splitlines(), printer)
    told = test.counts
    counts = Counts(told.passed, told.failed + told.crashed, told.skipped)
    if counts.failed:
        counts.problems.append(f"{name}: {counts.failed} cases failed: {' '.join(_failed(test))}")
    if not told.total():
        counts.fail(f"{name}: reported no test")
    elif told.errors:
        counts.fail(f"{name}: {told.errors} errors in its KTAP")
    elif status and not counts.failed:
        counts.fail(f"{name}: exited with {status} though no case failed")
    return counts


def options_for(variant: Variant) -> emulated.VmOptions:
    """The guest that the scripts run in; the kernel's own parameters tell them what they run on."""
    if variant == MEASURED:
        return OPTIONS
    parameters = f"sanitizer={variant.name} {variant.parameters}".strip() if variant.name in SANITIZERS else variant.parameters
    return replace(OPTIONS, kernel=variant.image, arch=variant.arch, mem=variant.mem, append=parameters)


def run_core(core: str, scripts: Sequence[Path], options: emulated.VmOptions, seconds: int = SECONDS) -> Counts:
    """All scripts on one core."""
    counts = Counts()

    def ended(script: in_turn.Ended) -> None:
        name = f"{script.script} on {core}"
        print(f"guest: {name} ({script.seconds:.0f} s)", flush=True)
        if script.kind:
            partial = parse(name, script.output, 0)
            counts.add(Counts(partial.passed, 0, partial.skipped))
            counts.fail(f"{name}: {script.reason}")
            return
        counts.add(parse(name, script.output, script.status))
        if script.warned:
            counts.fail(f"{name}: the kernel warned")

    options = replace(options, core=core, share=GUEST)
    names = [script.name for script in scripts]
    try:
        command = "PYTHONPATH=/share ./$0"
        for boot in in_turn.run(options, "/share/tests", command, seconds, names, ended):
            sys.stderr.write(boot.stderr.decode(errors="replace"))
            if boot.complaint:
                counts.fail(f"the kernel complained on {core}: {boot.complaint}; see {boot.console}")
    except Failure as failure:
        counts.fail(str(failure))
    return counts


def proof(variant: Variant) -> Counts:
    """Does a report of the sanitizer reach us? A guest of its own makes the mistake."""
    counts = Counts()
    # Nothing may preempt it: a scheduler that finds a lock held says so first, in other words than the sanitizer.
    command = f"chrt -f 99 sh -c 'echo {variant.crash} >/sys/kernel/debug/provoke-crash/DIRECT'"
    try:
        told = emulated.run(options_for(variant), [command], again=emulated.from_scratch).complaint
    except emulated.VmFailure as failure:
        told = str(failure)
    wrong = None if variant.report in told else told or "no report on the console"
    counts.judge(f"{variant.name} reports {variant.crash}", wrong)
    return counts


def find_scripts(names: Sequence[str]) -> list[Path]:
    """The test scripts, all of them or those whose name holds one of the words, which may be patterns."""
    scripts = sorted(TESTS.glob("test_*.py"))
    scripts = [script for script in scripts if not names or any(fnmatch(script.stem, f"*{name}*") for name in names)]
    if not scripts:
        raise Failure(f"no guest test matches {' '.join(names) or 'test_*.py'}; they are in tools/guest/tests", 2)
    return scripts


def run(names: Sequence[str] = (), cores: Sequence[str] = CORES, variant: Variant = MEASURED, smp: int = OPTIONS.smp) -> Counts:
    """Run the scripts on the cores."""
    counts = Counts()
    scripts = find_scripts(names)
    if variant.asked:
        scripts.append(SANITIZER)
    if variant.crash:
        counts.add(proof(variant))
    for core in cores:
        counts.add(run_core(core, scripts, replace(options_for(variant), smp=smp), SECONDS * variant.slowness))
    return counts
