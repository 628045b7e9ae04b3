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
    done = subprocess.run(command, cwd=PROJECT, env=clean() | environment, capture_output=True, text=True, check=True)
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
def test_only_the_command_line_sets_variables(words: list[str], command: list[str]) -> None:
    assert make(*words, **ALIEN) == command


WRONG = """
clean build=x                  make clean does not take build; it takes nothing
run PAIRS=1                    make run does not take PAIRS; it takes nothing
lint ARGS=x                    make lint does not take ARGS; it takes nothing
vm CORE=c                      make vm does not take CORE; it takes nothing
kernel SANITIZE=kasan          make kernel does not take SANITIZE; it takes ARCH PAGES
kernel ARCH=arm64 PAGES=8k     PAGES=8k is not possible; arm64 has PAGES=4k, 16k and 64k
guest ONLY=nothing             no guest test matches nothing; they are in tools/guest/tests
check ONLY=nothing             no guest test matches nothing; they are in tools/guest/tests
test sanitize=kasan            make test does not take sanitize; it takes SANITIZE RT ARCH PAGES
test SANITIZE=asan             argument --sanitize: invalid choice: 'asan'
test RT=0                      RT=0 is unknown; give RT=1, or omit it
test RT=1 SANITIZE=kasan       SANITIZE, RT and ARCH=arm64 need different kernels; give one of them
test ARCH=riscv                ARCH=riscv is unknown; give x86 or arm64
test PAGES=64k                 PAGES=64k is not possible; x86 has one size of pages
price CPUS=3                   CPUS is the number of CPUs of the guest; give 2, 4 or 8
price A=one                    give two cells to compare: A=
micro ARCH=x                   ARCH=x is unknown; give x86 or arm64
series CHECK=0                 CHECK=0 is unknown; give CHECK=1, or omit it
bench pairs=3                  make bench does not take pairs; it takes NATIVE ARGS, like ARGS="--help"
bench NATIVE=1 SIZE=4          make bench does not take SIZE; it takes NATIVE ARGS
bench TARGET=/tmp NATIVE=1     make bench TARGET= does not take NATIVE; it takes TARGET SIZE DESTRUCTIVE ARGS
bench 'ARGS=a=b c=d' X=1       make bench does not take X; it takes NATIVE ARGS
bench 'ARGS=--pairs 0'         argument --pairs: invalid positive value: '0'
bench 'ARGS=--only nothing'    --only nothing matches nothing; names are like
conformance 'ARGS=--only x'    no row matches x; they are in tools/guest/conformance
conformance 'ARGS=--core d'    argument --core: invalid choice: 'd' (choose from c, rust)
mutants 'ARGS=--only nothing'  no mutant matches nothing; they are in tools/mutants.toml
compare A=x                    make compare needs two results; give them as make compare A=
compare A=/nowhere B=/nowhere  /nowhere has no results.json; name a folder
results ARGS=nothing           argument page: invalid choice: 'nothing'
"""


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_wrong_words_are_refused_at_once_in_one_line(line: str) -> None:
    words = make(*shlex.split(line[:30]))
    if words[0] != "echo":
        # What is not refused at once may run for hours.
        done = subprocess.run(words[words.index("python3") :], cwd=PROJECT, capture_output=True, text=True, check=False, timeout=60)
        words = ["", done.stdout + done.stderr.rstrip(), str(done.returncode)]
    assert words[-1] == "2" and words[1].startswith("error: " + line[30:].strip()) and "\n" not in words[1]


def test_help_has_each_target() -> None:
    done = subprocess.run(["make", "help"], cwd=PROJECT, env=clean(), capture_output=True, text=True, check=True)
    told = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  make ")}
    phony = next(line for line in (PROJECT / "Makefile").read_text().splitlines() if line.startswith(".PHONY: run "))
    assert told == set(phony.split()[1:]) - {"help"}
