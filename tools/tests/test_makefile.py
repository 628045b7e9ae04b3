# SPDX-License-Identifier: GPL-2.0
"""Only what stands on make's command line counts, and it arrives as it was written."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
ENTER = ["tools/enter", "python3", "-m", "rust_writeback"]

AWKWARD = [
    "/mnt/o'brien's disk",
    "two  words",
    "'",
    "''",
    "a'b\"c",
    'say "hello"',
    "back\\slash",
    "x; exit 7",
    "`id`",
    "a&&b|c>d",
    "*",
    "-n",
    "tab\there",
]


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
    "SIM": "1",
    "NATIVE": "1",
    "QUICK": "1",
    "ARGS": "--help",
    "A": "/one",
    "B": "/two",
    "SANITIZE": "kasan",
    "ARCH": "arm64",
    "PAGES": "64k",
    "ONLY": "tree",
    "PAIRS": "3",
    "REPORT": "/here",
    "MEM": "1M",
    "VARIANTS": "rust",
    "DRIVE": "fast",
}
"""What somebody may have in the environment for reasons of his own."""


@pytest.mark.parametrize("name", ["bench", "compare", "conformance", "mutants", "kernel", "kunit", "lint", "audit", "micro", "price"])
@pytest.mark.parametrize("options", [[], ["-e"]], ids=["", "-e"])
def test_the_environment_does_not_divert(name: str, options: list[str]) -> None:
    assert make(*options, name, **ALIEN) == [*ENTER, name]


@pytest.mark.parametrize("name", ["run", "test"])
def test_nor_does_it_what_anybody_runs_first(name: str) -> None:
    assert make(name, **ALIEN) == ["tools/enter", "--install", *ENTER[1:], name]


def test_a_word_of_the_makefiles_own_is_its_own() -> None:
    assert make("bench", ARGUMENTS="--nonsense", given="yes", option="--nonsense") == [*ENTER, "bench"]


def test_what_is_given_counts_whatever_the_environment_says() -> None:
    assert make("bench", "SIM=1", "ARGS=--pairs 3", **ALIEN) == [*ENTER, "bench", "--sim=1", "--pairs", "3"]
    assert make("bench", "NATIVE=1", **ALIEN) == [*ENTER, "bench", "--native=1"]
    assert make("compare", "A=build/a", "B=build/b", **ALIEN) == [*ENTER, "compare", "build/a", "build/b"]
    assert make("test", "SANITIZE=kcsan", **ALIEN)[-2:] == ["test", "--sanitize=kcsan"]
    assert make("price", "A=one", "B=two", **ALIEN) == [*ENTER, "price", "--a=one", "--b=two"]
    assert make("price", "CPUS=4", **ALIEN) == [*ENTER, "price", "--cpus=4"]
    assert make("micro", "ARCH=arm64", **ALIEN)[-2:] == ["micro", "--arch=arm64"]
    for name in ("test", "kernel", "kunit"):
        assert make(name, "ARCH=arm64", "PAGES=64k", **ALIEN)[-3:] == [name, "--arch=arm64", "--pages=64k"]
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
    for name in ("SIM", "NATIVE", "QUICK"):
        assert make("bench", f"{name}={value}")[-1] == f"--{name.lower()}={value}"


def test_what_is_given_as_nothing_is_given() -> None:
    assert make("bench", "TARGET=")[1:3] == ["--target", ""]
    assert make("bench", "SIM=")[-1] == "--sim="
    assert make("compare", "A=", "B=x")[-2:] == ["", "x"]


def test_arguments_are_words_of_the_shell() -> None:
    assert make("bench", "ARGS=--only 'tree/*' --pairs 3")[-4:] == ["--only", "tree/*", "--pairs", "3"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bench", "TARGET=/tmp", "NATIVE=1", "SIM=1"], "SIM NATIVE: a TARGET is measured as it is; give one or the other"),
        (["bench", "NATIVE=1", "SIZE=4"], "SIZE: only for real hardware; give a TARGET or leave it out"),
        (["bench", "DRIVE=fast"], 'DRIVE: make does not know it; options are given like ARGS="--pairs 3"'),
        (["bench", "TARGET=/tmp", "ONLY=tree"], 'ONLY: make does not know it; options are given like ARGS="--pairs 3"'),
        (["micro", "ARCH=arm64", "PAGES=64k"], "PAGES: instructions are counted with pages of 4 KiB; leave it out"),
        (["price", "ARCH=arm64"], "ARCH: instructions are counted on x86; leave it out"),
        (["conformance", "CORE=c"], 'CORE: make does not know it; options are given like ARGS="--only no_oops_*"'),
        (["mutants", "ONLY=walk_*"], 'ONLY: make does not know it; options are given like ARGS="--only kick_*"'),
    ],
)
def test_what_would_be_ignored_is_refused(words: list[str], said: str) -> None:
    command = ["make", "--no-print-directory", *words]
    done = subprocess.run(command, cwd=PROJECT, env=clean(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"error: {said}")


def test_help_names_all_that_there_is() -> None:
    done = subprocess.run(["make", "help"], cwd=PROJECT, env=clean(), capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    told = {line.split()[1] for line in lines}
    phony = next(line for line in (PROJECT / "Makefile").read_text().splitlines() if line.startswith(".PHONY:"))
    assert told == set(phony.split()[1:]) - {"help"}
    assert any(line.startswith("make bench NATIVE=1 ") for line in lines)


def test_patterns_are_not_names_of_files(tmp_path: Path) -> None:
    (tmp_path / "build" / "nfs").mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    enter = tmp_path / "tools" / "enter"
    enter.write_text('#!/bin/sh\necho "$@"\n')
    enter.chmod(0o755)
    command = ["make", "-f", PROJECT / "Makefile", "bench", "ARGS=--only */nfs --pairs 3"]
    done = subprocess.run(command, cwd=tmp_path, env=clean(), capture_output=True, text=True, check=True)
    assert done.stdout.split()[-4:] == ["--only", "*/nfs", "--pairs", "3"]
