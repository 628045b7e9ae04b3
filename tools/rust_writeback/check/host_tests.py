# SPDX-License-Identifier: GPL-2.0
"""Tests the pure core and the tools themselves on the host."""

import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from .. import paths
from .guest_tests import Counts

ENVIRONMENT = {"CARGO_TARGET_DIR": str(paths.BUILD / "host")}


def parse_cargo(output: str) -> Counts:
    """The counts of all the test programs that cargo ran."""
    counts = Counts()
    for found in re.finditer(r"^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored", output, re.MULTILINE):
        passed, failed, ignored = (int(number) for number in found.groups())
        counts.add(Counts(passed, failed, ignored))
    return counts


def parse_junit(report: Path) -> Counts:
    """The counts of a report of pytest, if it has written one."""
    counts = Counts()
    for suite in ElementTree.parse(report).iter("testsuite") if report.exists() else ():
        tests, failed, errors, skipped = (int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped"))
        counts.add(Counts(tests - failed - errors - skipped, failed + errors, skipped))
    return counts


def judged(name: str, counts: Counts, status: int) -> Counts:
    """A run that ends badly, or tells no test at all, has failed whatever it counted."""
    wrong = f"ended with status {status}" if status else "" if counts.passed else "ran no test"
    if counts.failed:
        counts.problems.append(f"{name}: {counts.failed} tests failed")
    elif wrong:
        counts.fail(f"{name}: {wrong}")
    return counts


def cargo(loom: bool = False) -> Counts:
    """The tests of the pure core; with loom, its models only."""
    environment = {**os.environ, **ENVIRONMENT}
    name = "cargo test"
    if loom:
        # A folder of its own: other flags would have everything compiled again in turns.
        environment |= {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": f"{paths.BUILD / 'host-loom'}"}
        name = "cargo test with loom"
    command = ["cargo", "test", "--no-fail-fast", *(["--test=*_model"] if loom else [])]
    result = subprocess.run(command, cwd=paths.PROJECT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    print(result.stdout, end="", flush=True)
    return judged(name, parse_cargo(result.stdout), result.returncode)


def pytest() -> Counts:
    """The tests of the tools."""
    report = paths.LOG / "pytest.xml"
    report.unlink(missing_ok=True)
    cache = f"-ocache_dir={paths.BUILD / 'pytest'}"
    command = ["python3", "-m", "pytest", "-q", cache, f"--junit-xml={report}", str(paths.TOOLS / "tests")]
    status = subprocess.run(command, cwd=paths.PROJECT, check=False).returncode
    return judged("pytest", parse_junit(report), status)
