# SPDX-License-Identifier: GPL-2.0
"""make lint: check the sources without running them.

Each linter counts the files that it looked at. A linter that finds no file fails, because it would pass for ever
after its files have moved.
"""

import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Sequence, Set
from pathlib import Path

from .. import paths, steps
from ..bench import kept
from ..build import arm64, config, kernel, overlay
from ..build.variants import MEASURED
from ..errors import Failure, Parser
from ..run import must
from . import host_tests, lines
from .guest_tests import Counts

SHELL = re.compile(rb"#!(/bin/sh|/bin/bash|/usr/bin/env bash)\n")
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


Linter = tuple[str, list[Path], Callable[[list[Path]], str]]
"""A name, the files it looks at, and the run, which returns what is wrong with them."""


def files_in(*folders: str) -> list[Path]:
    """All files in these folders of the project."""
    return sorted(path for folder in folders for path in (paths.PROJECT / folder).rglob("*") if path.is_file())


def _said(command: Sequence[str | Path], **options: str) -> str:
    """What a command says if it fails."""
    result = subprocess.run(
        command, cwd=paths.PROJECT, env=os.environ | options, capture_output=True, text=True, errors="replace", check=False
    )
    return (result.stdout + result.stderr).rstrip() or "failed" if result.returncode else ""


def clippy_kernel(files: list[Path]) -> str:
    """What the kernel compiles, with its KUnit suites, in a build folder of its own.

    The kernel's flags warn of public items without documentation and of unsafe
    blocks without a SAFETY comment; a warning is an error here.
    """
    steps.need_room(paths.BUILD, 1.0, "clippy's build folder")
    with steps.only_one("kernel"):
        out = paths.BUILD / "clippy"
        asked = config.merge(MEASURED.fragments)
        asked |= {"CONFIG_KUNIT": "y", "CONFIG_RUST_WRITEBACK_KUNIT_TEST": "y"}
        kernel.configured(asked, out, "-clippy")
        # Those of our objects that are crates of their own, which a Makefile names.
        places = overlay.read_allowlist().values()
        objects = [name for name in arm64.objects() if f"{name.removesuffix('.o')}.rs" in places]
        command = kernel.make("CLIPPY=1", "KRUSTFLAGS=-Dwarnings", "prepare", *objects, out=out)
        must(command, paths.LOG / "clippy.log", "clippy", kernel.make_environment())
    return ""


def checkpatch(files: list[Path], tree: Path = paths.LINUX, ignore: Set[str] = CHECKPATCH_IGNORE) -> str:
    """The kernel's style for what is in its tree, and for patches."""
    script = tree / "scripts" / "checkpatch.pl"
    options = ["--strict", "--quiet", "--show-types", "--no-signoff", f"--root={tree}", f"--ignore={','.join(sorted(ignore))}"]
    said = [_said([script, *options, *([] if file.suffix == ".patch" else ["--file"]), file]) for file in files]
    return "\n".join(filter(None, said))


def unsafe(files: list[Path]) -> str:
    """Whether each file uses it as often as it may: what has gone down may not come back.

    clippy demands a SAFETY comment for each block, and a section for each function.
    """
    used = {str(file.relative_to(paths.PROJECT)): len(re.findall(r"\bunsafe\b", lines.code(file))) for file in files}
    allowed = tomllib.loads(UNSAFE.read_text())
    return "\n".join(
        f"{name} uses unsafe {used.get(name, 0)} times, and tools/{UNSAFE.name} has {allowed.get(name, 0)}; make them equal"
        for name in sorted(used.keys() | allowed.keys())
        if used.get(name, 0) != allowed.get(name, 0)
    )


def linters() -> list[Linter]:
    """All linters with what they look at."""
    code = files_in("rust", "mm", "fs", "block", "kunit")
    rust = [path for path in code if path.suffix == ".rs"]
    c = [path for path in code if path.suffix in (".c", ".h")]
    shell = [path for path in files_in("tools", ".ci") if SHELL.match(path.read_bytes())]
    pure = [path for path in rust if path.is_relative_to(paths.PROJECT / "rust" / "kernel" / "writeback")]
    python = [path for path in files_in("tools") if path.suffix == ".py"]
    rustfmt = ["rustfmt", "--check", "--edition=2021", f"--config-path={paths.LINUX / '.rustfmt.toml'}"]
    # A crate of QEMU's plugin asks for a newer compiler than it needs.
    clippy = ["cargo", "clippy", "--quiet", "--workspace", "--all-targets", "--ignore-rust-version", "--", "-Dwarnings"]
    clippy.append("-Dclippy::undocumented_unsafe_blocks")
    types = ["mypy", "--strict", f"--cache-dir={paths.BUILD / 'mypy'}"]
    placed = [paths.PROJECT / source for source in overlay.read_allowlist() if source.endswith(".rs")]
    return [
        ("rustfmt", [*rust, *(paths.TOOLS / "price").glob("*.rs")], lambda files: _said([*rustfmt, *files])),
        ("clippy on the host", pure, lambda _: _said(clippy, **host_tests.ENVIRONMENT)),
        ("clippy in the kernel", placed, clippy_kernel),
        ("uses of unsafe", [path for path in rust if path.parent.name != "compile_fail"], unsafe),
        ("checkpatch", c + placed + overlay.patches(), checkpatch),
        ("shellcheck", shell, lambda files: _said(["shellcheck", *files])),
        ("pyflakes", python, lambda files: _said(["pyflakes3", *files])),
        ("mypy", python, lambda files: _said([*types, *files], MYPYPATH=f"{paths.TOOLS}:{paths.TOOLS}/guest")),
        ("results", sorted((paths.PROJECT / kept.RESULTS).glob("*.json")), lambda _: "\n".join(kept.stale())),
    ]


def judge(files: list[Path], linter: Callable[[list[Path]], str]) -> str | None:
    """Run one linter; what is wrong, or None. No file is a failure."""
    if not files:
        return "it found no file"
    try:
        said = linter(files)
    except Failure as failure:
        return str(failure)
    if said:
        print(said, flush=True)
    return "not clean" if said else None


def run() -> Counts:
    """Run all linters; each is a case."""
    with steps.only_one("kernel"):
        kernel.prepare()  # brings the kernel's own rules
    counts = Counts()
    for name, files, linter in linters():
        counts.judge(f"lint: {name}, {len(files)} files", judge(files, linter))
    return counts


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    Parser(prog="rust_writeback lint", description=__doc__).parse_args(arguments)
    return run().told()
