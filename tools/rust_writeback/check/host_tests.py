# SPDX-License-Identifier: GPL-2.0
"""Tests the pure core and the tools themselves on the host."""

import os
import re
from collections import Counter

from .. import paths
from ..run import logged
from .guest_tests import Counts

ENVIRONMENT = {"CARGO_TARGET_DIR": str(paths.BUILD / "host")}

SUMMARY = re.compile(r"^(?:test result: |\d+ ).*(?: finished)? in \d+\.\d+s", re.MULTILINE)
"""The last line of each test program that cargo runs, and that of pytest."""


def judged(name: str, output: str, status: int) -> Counts:
    """What the tests said of themselves. A run that ends badly, or tells no test at all, has failed."""
    told: Counter[str] = Counter()
    for summary in SUMMARY.findall(output):
        for number, what in re.findall(r"(\d+) (passed|failed|error|ignored|skipped)", summary):
            told[what] += int(number)
    counts = Counts(told["passed"], told["failed"] + told["error"], told["ignored"] + told["skipped"])
    if counts.failed:
        counts.problems.append(f"{name}: {counts.failed} tests failed")
    elif status or not counts.passed:
        counts.fail(f"{name}: ended with status {status}" if status else f"{name}: ran no test")
    return counts


def _run(name: str, command: list[str], environment: dict[str, str]) -> Counts:
    log = paths.LOG / f"{name}.log"
    status = logged(command, log, os.environ | environment, lambda line: print(line, end="", flush=True), paths.PROJECT)
    return judged(name, log.read_text(errors="replace"), status)


def cargo() -> Counts:
    """The tests of the pure core."""
    return _run("cargo-test", ["cargo", "test", "--no-fail-fast"], ENVIRONMENT)


def loom() -> Counts:
    """Its models. They have a folder of their own: other flags would have everything compiled again in turns."""
    environment = {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": f"{paths.BUILD / 'host-loom'}"}
    return _run("cargo-test-loom", ["cargo", "test", "--no-fail-fast", "--test=*_model"], environment)


def pytest() -> Counts:
    """The tests of the tools."""
    cache = f"-ocache_dir={paths.BUILD / 'pytest'}"
    return _run("pytest", ["python3", "-m", "pytest", "-q", "--color=no", cache, str(paths.TOOLS / "tests")], {})
