# SPDX-License-Identifier: GPL-2.0
"""Only what stands on make's command line counts, and it arrives as it was written."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
ENTER = ["tools/enter", "python3", "-m", "rust_writeback"]

AWKWARD = ["/mnt/o'brien's  disk", "''", 'a\'b"c\\d', "-n; `id`&&b|c>d *\there"]


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


ALIEN = {
    "TARGET": "/mnt/other",
    "SIZE": "3",
    "DESTRUCTIVE": "1",
    "NATIVE": "1",
    "ARGS": "--help",
    "A": "/one",
    "B": "/two",
    "SANITIZE": "kasan",
    "ARCH": "arm64",
    "PAGES": "64k",
    "ONLY": "tree",
}
"""What somebody may have in the environment for reasons of his own."""


@pytest.mark.parametrize("name", ["bench", "compare", "conformance", "mutants", "kernel", "kunit", "lint", "lines", "micro", "price"])
@pytest.mark.parametrize("options", [[], ["-e"]], ids=["", "-e"])
def test_the_environment_does_not_divert(name: str, options: list[str]) -> None:
    assert make(*options, name, **ALIEN) == [*ENTER, name]


@pytest.mark.parametrize("name", ["run", "test"])
def test_nor_does_it_what_anybody_runs_first(name: str) -> None:
    assert make(name, **ALIEN) == ["tools/enter", "--install", *ENTER[1:], name]


def test_a_word_of_the_makefiles_own_is_its_own() -> None:
    assert make("bench", ARGUMENTS="--nonsense", given="yes", option="--nonsense") == [*ENTER, "bench"]


def test_what_is_given_counts_whatever_the_environment_says() -> None:
    assert make("bench", "NATIVE=1", "ARGS=--pairs 3", **ALIEN) == [*ENTER, "bench", "--native=1", "--pairs", "3"]
    assert make("compare", "A=build/a", "B=build/b", **ALIEN) == [*ENTER, "compare", "build/a", "build/b"]
    assert make("test", "SANITIZE=kcsan", **ALIEN)[-2:] == ["test", "--sanitize=kcsan"]
    assert make("price", "A=one", "B=two", **ALIEN) == [*ENTER, "price", "--a=one", "--b=two"]
    assert make("price", "CPUS=4", **ALIEN) == [*ENTER, "price", "--cpus=4"]
    assert make("micro", "ARCH=arm64", **ALIEN)[-2:] == ["micro", "--arch=arm64"]
    for name in ("test", "kernel", "kunit"):
        assert make(name, "ARCH=arm64", "PAGES=64k", **ALIEN)[-3:] == [name, "--arch=arm64", "--pages=64k"]
    assert make("check", "ONLY=walk*", **ALIEN)[-3:] == ["test", "--part=check", "--only=walk*"]
    assert make("guest", "ONLY=walk*", **ALIEN)[-3:] == ["test", "--part=guest", "--only=walk*"]
    assert make("host", **ALIEN)[-2:] == ["test", "--part=host"]
    assert make("test", "RT=1", **ALIEN)[-2:] == ["test", "--rt=1"]
    assert make("series", "CHECK=1", **ALIEN)[-2:] == ["series", "--check=1"]
    assert make("conformance", "ARGS=--core c", **ALIEN) == [*ENTER, "conformance", "--core", "c"]
    target = ["tools/enter", "--target", "/dev/x", *ENTER[1:], "bench-target"]
    assert make("bench", "TARGET=/dev/x", **ALIEN) == target
    assert make("bench", "TARGET=/dev/x", "SIZE=2", "DESTRUCTIVE=1", "ARGS=--dry-run", **ALIEN) == [
        *(*target, "--size=2", "--destructive=1", "--dry-run")
    ]


@pytest.mark.parametrize("value", AWKWARD)
def test_a_value_is_one_word_whatever_is_in_it(value: str) -> None:
    assert make("bench", f"TARGET={value}")[1:3] == ["--target", value]
    assert make("bench", "TARGET=/mnt", f"SIZE={value}", f"DESTRUCTIVE={value}")[-2:] == [
        f"--size={value}",
        f"--destructive={value}",
    ]
    assert make("compare", f"A={value}", f"B={value}")[-2:] == [value, value]
    assert make("test", f"SANITIZE={value}")[-1] == f"--sanitize={value}"
    assert make("bench", f"NATIVE={value}")[-1] == f"--native={value}"


def test_what_is_given_as_nothing_is_given() -> None:
    assert make("bench", "TARGET=")[1:3] == ["--target", ""]
    assert make("bench", "NATIVE=")[-1] == "--native="
    assert make("compare", "A=", "B=x")[-2:] == ["", "x"]


def test_arguments_are_words_of_the_shell() -> None:
    assert make("bench", "ARGS=--only 'tree/*' --pairs 3")[-4:] == ["--only", "tree/*", "--pairs", "3"]


NONE = "it takes nothing"
BENCH = 'it takes NATIVE ARGS, like ARGS="--help"'
TARGET = 'it takes TARGET SIZE DESTRUCTIVE ARGS, like ARGS="--help"'
REFUSED = {
    "run PAIRS=1": f"make run does not take PAIRS; {NONE}",
    "clean build=x": f"make clean does not take build; {NONE}",
    "micro ARCH=arm64 PAGES=64k": "make micro does not take PAGES; it takes ARCH",
    "test sanitize=kasan": "make test does not take sanitize; it takes SANITIZE RT ARCH PAGES",
    "conformance CORE=c": 'make conformance does not take CORE; it takes ARGS, like ARGS="--help"',
    "bench PAIRS=3 REPORT=here": f"make bench does not take PAIRS REPORT; {BENCH}",
    "bench NATIVE=1 SIZE=4": f"make bench does not take SIZE; {BENCH}",
    "bench TARGET=/tmp NATIVE=1 CPUS=4": f"make bench TARGET= does not take NATIVE CPUS; {TARGET}",
    "bench 'ARGS=--only a=b c=d' X=1": f"make bench does not take X; {BENCH}",
}
"""What would be ignored, and what make says."""


def told(words: str) -> tuple[int, str]:
    """The status of make with these words, and the first line of its complaint."""
    command = ["make", "--no-print-directory", *shlex.split(words)]
    done = subprocess.run(command, cwd=PROJECT, env=clean(), capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.splitlines()[0]


@pytest.mark.parametrize("words", REFUSED)
def test_a_variable_that_would_be_ignored_is_refused(words: str) -> None:
    status, said = told(words)
    # The order of several is make's.
    assert (status, sorted(said.replace(";", " ;").split())) == (2, sorted(f"error: {REFUSED[words].replace(";", " ;")}".split()))


def test_help_names_all_that_there_is() -> None:
    done = subprocess.run(["make", "help"], cwd=PROJECT, env=clean(), capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("  make ")]
    told = {line.split()[1] for line in lines}
    phony = next(line for line in (PROJECT / "Makefile").read_text().splitlines() if line.startswith(".PHONY: run "))
    assert told == set(phony.split()[1:]) - {"help"}
    assert max(map(len, lines)) <= 100
    assert {line.split()[2] for line in lines if line.split()[1] == "bench"} >= {"NATIVE=1", "TARGET=PLACE"}


def test_patterns_are_not_names_of_files(tmp_path: Path) -> None:
    (tmp_path / "build" / "nfs").mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    enter = tmp_path / "tools" / "enter"
    enter.write_text('#!/bin/sh\necho "$@"\n')
    enter.chmod(0o755)
    command = ["make", "-f", f"{PROJECT}/Makefile", "bench", "ARGS=--only */nfs --pairs 3"]
    done = subprocess.run(command, cwd=tmp_path, env=clean(), capture_output=True, text=True, check=True)
    assert done.stdout.split()[-4:] == ["--only", "*/nfs", "--pairs", "3"]
