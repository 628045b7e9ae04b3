# SPDX-License-Identifier: GPL-2.0
"""Only what stands on make's command line counts, and it arrives as it was written."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
ENTER = ["tools/enter", "python3", "-m", "rust_writeback"]

def clean() -> dict[str, str]:
    """The environment without what another make may have left there."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}


def make(*words: str, **environment: str) -> list[str]:
    """The words of the one command that make would run."""
    command = ["make", "-n", "--no-print-directory", *words]
    done = subprocess.run(
        command, cwd=PROJECT, env=clean() | environment, capture_output=True, text=True, check=True
    )
    return shlex.split(done.stdout.replace("\\\n", ""))


ALIEN = dict.fromkeys(["TARGET", "SIZE", "DESTRUCTIVE", "NATIVE", "ARGS", "A", "B", "SANITIZE", "ARCH", "PAGES", "ONLY", "CPUS"], "--x")
"""What somebody may have in the environment for reasons of his own."""

TARGET = ["tools/enter", "--target", "/dev/x", *ENTER[1:], "bench-target"]
TEST = ["tools/enter", "--install", *ENTER[1:], "test"]
AWKWARD = "/mnt/o'brien's  d\"i\\sk; `id`&&b|c>d *\there"


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["lint"], [*ENTER, "lint"]),
        (["-e", "bench"], [*ENTER, "bench"]),
        (["run"], ["tools/enter", "--install", *ENTER[1:], "run"]),
        (["bench", "NATIVE=1", "ARGS=--only 'tree/*' --pairs 3"], [*ENTER, "bench", "--native=1", "--only", "tree/*", "--pairs", "3"]),
        (["bench", "TARGET=/dev/x", "SIZE=2", "DESTRUCTIVE=1", "ARGS=-n"], [*TARGET, "--size=2", "--destructive=1", "-n"]),
        (["price", "A=one", "B=two", "CPUS=4"], [*ENTER, "price", "--cpus=4", "--a=one", "--b=two"]),
        (["micro", "ARCH=arm64"], [*ENTER, "micro", "--arch=arm64"]),
        (["kernel", "ARCH=arm64", "PAGES=64k"], [*ENTER, "kernel", "--arch=arm64", "--pages=64k"]),
        (["test", "ARCH=arm64", "PAGES=64k"], [*TEST, "--arch=arm64", "--pages=64k"]),
        (["test", "SANITIZE=kcsan"], [*TEST, "--sanitize=kcsan"]),
        (["test", "RT=1"], [*TEST, "--rt=1"]),
        (["nightly"], [*TEST, "--part=nightly"]),
        (["check", "ONLY=walk*"], [*ENTER, "test", "--part=check", "--only=walk*"]),
        (["guest", "ONLY=walk*"], [*ENTER, "test", "--part=guest", "--only=walk*"]),
        (["host"], [*ENTER, "test", "--part=host"]),
        (["series", "CHECK=1"], [*ENTER, "series", "--check=1"]),
        (["conformance", "ARGS=--core c"], [*ENTER, "conformance", "--core", "c"]),
        # A value is one word whatever is in it, also nothing.
        (["compare", f"A={AWKWARD}", "B="], [*ENTER, "compare", AWKWARD, ""]),
        (["test", f"SANITIZE={AWKWARD}"], [*TEST, f"--sanitize={AWKWARD}"]),
        (["bench", f"TARGET={AWKWARD}"], ["tools/enter", "--target", AWKWARD, *ENTER[1:], "bench-target"]),
    ],
)
def test_what_is_given_counts_whatever_the_environment_says(words: list[str], command: list[str]) -> None:
    assert make(*words, **ALIEN) == command


NONE = "it takes nothing"
BENCH = 'it takes NATIVE ARGS, like ARGS="--help"'
REFUSED = {
    "clean build=x": f"make clean does not take build; {NONE}",
    "test sanitize=kasan": "make test does not take sanitize; it takes SANITIZE RT ARCH PAGES",
    "bench NATIVE=1 SIZE=4": f"make bench does not take SIZE; {BENCH}",
    "bench TARGET=/tmp NATIVE=1": 'make bench TARGET= does not take NATIVE; it takes TARGET SIZE DESTRUCTIVE ARGS, like ARGS="--help"',
    "bench 'ARGS=--only a=b c=d' X=1": f"make bench does not take X; {BENCH}",
}
"""What would be ignored, and what make says."""


@pytest.mark.parametrize("words", REFUSED)
def test_a_variable_that_would_be_ignored_is_refused(words: str) -> None:
    assert make(*shlex.split(words)) == ["echo", f"error: {REFUSED[words]}", ">&2;", "exit", "2"]


def test_help_names_all_that_there_is() -> None:
    done = subprocess.run(["make", "help"], cwd=PROJECT, env=clean(), capture_output=True, text=True, check=True)
    told = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  make ")}
    phony = next(line for line in (PROJECT / "Makefile").read_text().splitlines() if line.startswith(".PHONY: run "))
    assert told == set(phony.split()[1:]) - {"help"}
