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
    verdict: str = seen[0]
    return verdict


def run(tests: Path = TESTS, model: Path = LINUX / "tools" / "memory-model") -> list[tuple[str, str | None]]:
    """Each test with what is wrong with the model's verdict on it, or None."""
    command = herd_command()
    verdicts: list[tuple[str, str | None]] = []
    for test in sorted(tests.glob("*.litmus")):
        match = EXPECTED.search(test.read_text())
        if match is None:
            raise Failure(f"{test.name} names no expected result; add a line ` * Result: Never`")
        seen = outcome(command, test, model)
        verdicts.append((test.stem, None if seen == match[1] else f"{seen}, and should be {match[1]}"))
    if not verdicts:
        raise Failure(f"no litmus tests in {tests}")
    return verdicts


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    Parser(prog="rust_writeback litmus", description=__doc__).parse_args(arguments)
    kernel.prepare()
    verdicts = run()
    for name, wrong in verdicts:
        print(f"{name:24} {wrong or 'as it should be'}")
    return 1 if any(wrong for _, wrong in verdicts) else 0
