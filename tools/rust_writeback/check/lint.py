# SPDX-License-Identifier: GPL-2.0
"""make lint: check the sources without running them.

Each linter counts the files that it looked at. A linter that finds no file fails, because it would pass for ever
after its files have moved.
"""

import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import paths, steps
from ..bench import kept
from ..build import config, kernel, overlay, wiring
from ..build.variants import MEASURED
from ..errors import Failure, Parser
from ..run import must
from . import host_tests, lines

CODE = ("rust", "mm", "fs", "block", "kunit")
CLIPPY_OUT = paths.BUILD / "clippy"
UNSAFE = paths.TOOLS / "unsafe.toml"

CHECKPATCH_IGNORE = {
    # These are about mails to a list, and what goes there is not a wiring patch.
    "COMMIT_MESSAGE",
    "MISSING_SIGN_OFF",
    "FILE_PATH_CHANGES",
    # What is exported is defined by a macro or in Rust, out of checkpatch's sight.
    "EXPORT_SYMBOL",
    # mm/Kconfig sources a file whose name begins with its own.
    "EMBEDDED_FILENAME",
}


@dataclass
class Linter:
    """A name, the files it looks at, and the run, which says whether they are clean."""

    name: str
    files: list[Path]
    run: Callable[[list[Path]], bool]


def code_files(*suffixes: str, project: Path = paths.PROJECT) -> list[Path]:
    """Our files with one of these suffixes."""
    found = (path for folder in CODE for path in (project / folder).rglob("*"))
    return sorted(path for path in found if path.suffix in suffixes and path.is_file())


def shell_files(project: Path = paths.PROJECT) -> list[Path]:
    """What begins with the line of a shell."""
    found: list[Path] = []
    for folder in (project / "tools", project / ".ci"):
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                with path.open("rb") as file:
                    if file.readline().rstrip() in (b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash"):
                        found.append(path)
    return sorted(found)


def _quietly(command: Sequence[str | Path], **options: str) -> bool:
    """Run a command, show what it says only if it fails."""
    environment = {**os.environ, **options}
    result = subprocess.run(
        command, cwd=paths.PROJECT, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    if result.returncode:
        print((result.stdout + result.stderr).rstrip(), flush=True)
    return result.returncode == 0


def clippy_kernel(files: list[Path]) -> bool:
    """What the kernel compiles, with its KUnit suites, in a build folder of its own.

    The kernel's flags warn of public items without documentation and of unsafe
    blocks without a SAFETY comment; a warning is an error here.
    """
    steps.need_room(paths.BUILD, 1.0, "clippy's build folder")
    with steps.only_one("kernel"):
        kernel.prepare()
        asked = config.merge(MEASURED.fragments)
        asked |= {"CONFIG_KUNIT": "y", "CONFIG_RUST_WRITEBACK_KUNIT_TEST": "y"}
        kernel.configured(asked, CLIPPY_OUT, "-clippy")
        objects = [str(Path(place).with_suffix(".o")) for place in _edges()]
        for targets in (["prepare"], objects):
            command = kernel.make("CLIPPY=1", "KRUSTFLAGS=-Dwarnings", *targets, out=CLIPPY_OUT)
            must(command, paths.LOG / "clippy.log", "clippy", kernel.make_environment())
    return True


def _edges() -> list[str]:
    """The Rust files of ours that are crates of their own in the kernel: its Makefiles name them."""
    hooks = " ".join(patch.read_text() for patch in wiring.patches())
    rust = [Path(place) for place in overlay.read_allowlist().values() if place.endswith(".rs")]
    return [str(place) for place in rust if f"{place.stem}.o" in hooks.split() and place.parts[0] != "rust"]


def checkpatch(files: list[Path]) -> bool:
    """The kernel's style for what is in its tree, and for patches."""
    clean = True
    for file in files:
        what = [] if file.suffix == ".patch" else ["--file"]
        ignore = f"--ignore={','.join(sorted(CHECKPATCH_IGNORE))}"
        command = ["--strict", "--quiet", "--show-types", "--no-signoff", ignore, f"--root={paths.LINUX}", *what, str(file)]
        clean &= _quietly([paths.LINUX / "scripts" / "checkpatch.pl", *command])
    return clean


def uses_of_unsafe(files: Sequence[Path], project: Path, allowed: Mapping[str, int]) -> list[str]:
    """Files whose number of uses is not the one that is allowed: what has gone down may not come back."""
    used = {str(file.relative_to(project)): len(re.findall(r"\bunsafe\b", lines.code(file))) for file in files}
    return [
        f"{name} uses unsafe {used.get(name, 0)} times, and tools/{UNSAFE.name} has {allowed.get(name, 0)}; make them equal"
        for name in sorted(used.keys() | allowed.keys())
        if used.get(name, 0) != allowed.get(name, 0)
    ]


def unsafe(files: list[Path]) -> bool:
    """How often each file uses it; clippy demands a SAFETY comment for each block, and a section for each function."""
    wrong = uses_of_unsafe(files, paths.PROJECT, tomllib.loads(UNSAFE.read_text()))
    print("".join(f"{line}\n" for line in wrong), end="", flush=True)
    return not wrong


def results(files: list[Path]) -> bool:
    """Whether counted results are of this code, and pages, README and picture follow from their figures."""
    wrong = kept.stale()
    print("".join(f"{line}\n" for line in wrong), end="", flush=True)
    return not wrong


def linters() -> list[Linter]:
    """All linters with what they look at."""
    rust = code_files(".rs")
    pure = [path for path in rust if path.is_relative_to(paths.PROJECT / "rust" / "kernel" / "writeback")]
    guest = paths.TOOLS / "guest"
    python = [path for name in ("rust_writeback", "tests") for path in (paths.TOOLS / name).rglob("*.py")]
    python += [path for name in (".", "bench", "conformance", "lib", "tests") for path in (guest / name).glob("*.py")]
    rustfmt = ["rustfmt", "--check", "--edition=2021", f"--config-path={paths.LINUX / '.rustfmt.toml'}"]
    # A crate of QEMU's plugin asks for a newer compiler than it needs.
    clippy = ["cargo", "clippy", "--quiet", "--workspace", "--all-targets", "--ignore-rust-version", "--", "-Dwarnings"]
    clippy.append("-Dclippy::undocumented_unsafe_blocks")
    types = ["mypy", "--strict", f"--cache-dir={paths.BUILD / 'mypy'}"]
    placed = [paths.PROJECT / source for source in overlay.read_allowlist() if source.endswith(".rs")]
    return [
        Linter("rustfmt", [*rust, *(paths.TOOLS / "price").glob("*.rs")], lambda files: _quietly([*rustfmt, *files])),
        Linter("clippy on the host", pure, lambda _: _quietly(clippy, **host_tests.ENVIRONMENT)),
        Linter("clippy in the kernel", placed, clippy_kernel),
        Linter("uses of unsafe", [path for path in rust if path.parent.name != "compile_fail"], unsafe),
        Linter("checkpatch", code_files(".c", ".h") + placed + wiring.patches(), checkpatch),
        Linter("shellcheck", shell_files(), lambda files: _quietly(["shellcheck", *files])),
        Linter("pyflakes", sorted(paths.TOOLS.rglob("*.py")), lambda files: _quietly(["pyflakes3", *files])),
        Linter("mypy", sorted(python), lambda files: _quietly([*types, *files], MYPYPATH=f"{paths.TOOLS}:{guest}")),
        Linter("results", sorted((paths.PROJECT / kept.RESULTS).glob("*.json")), results),
    ]


def judge(linter: Linter) -> bool:
    """Run one linter and print its verdict; no file is a failure."""
    try:
        clean = bool(linter.files) and linter.run(linter.files)
    except Failure as failure:
        print(f"lint: {failure}")
        clean = False
    verdict = "clean" if clean else "failed" if linter.files else "failed: it found no file"
    print(f"lint: {linter.name}: {len(linter.files)} files, {verdict}", flush=True)
    return clean


def run() -> list[tuple[str, bool]]:
    """Run all linters; each with whether its files are clean."""
    with steps.only_one("kernel"):
        kernel.prepare()  # brings the kernel's own rules
    return [(linter.name, judge(linter)) for linter in linters()]


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    Parser(prog="rust_writeback lint", description=__doc__).parse_args(arguments)
    return 0 if all(clean for _, clean in run()) else 1
