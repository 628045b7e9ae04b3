# SPDX-License-Identifier: GPL-2.0
"""Checks the orders that the kick, the ring and the counter rely on, under the kernel's own memory model.

Each test below rust/tests/litmus is two or three CPUs and an outcome that loses a page or a count. herd7 tries all
that tools/memory-model of the kernel tree lets happen, and reports whether the outcome can happen: `Never` for
our code, `Sometimes` for what C does instead, or for our code without an order.
"""

import re
import subprocess
from pathlib import Path

from ..build import kernel
from ..build.unpacked import Packages
from ..errors import Failure, Parser
from ..paths import LINUX, PROJECT
from .compile_fail import compared
from .guest_tests import Counts

TESTS = PROJECT / "rust" / "tests" / "litmus"
EXPECTED = re.compile(r"^ \* Result: (Never|Sometimes|Always)$", re.MULTILINE)
SEEN = re.compile(r"^Observation \S+ (Never|Sometimes|Always) ", re.MULTILINE)

HERD = Packages("herd", "herd7", ("herdtools7", "libc6", "libgmp10"), 0.5, suite="forky")
"""trixie has none that knows the model of 7.3."""


def herd_command() -> list[str]:
    """How herd7 is run, for the kernel's model."""
    share = HERD.folder() / "usr/share/herdtools7/herd"
    return [*HERD.command("bin/herd7"), "-set-libdir", str(share), "-conf", "linux-kernel.cfg"]


def outcome(command: list[str], test: Path, model: Path) -> str:
    """What herd7 says of a test."""
    done = subprocess.run([*command, str(test)], cwd=model, capture_output=True, text=True, check=False)
    seen = SEEN.findall(done.stdout)
    if done.returncode or len(seen) != 1:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise Failure(f"herd7 has no verdict on {test.name}: {said}")
    return str(seen[0])


def run(tests: Path = TESTS, model: Path = LINUX / "tools" / "memory-model") -> Counts:
    """What the model says of each test."""
    command = herd_command()
    return compared("litmus", [*tests.glob("*.litmus")], EXPECTED, lambda test: outcome(command, test, model))


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    Parser(prog="rust_writeback litmus", description=__doc__).parse_args(arguments)
    kernel.prepare()
    return run().told()
