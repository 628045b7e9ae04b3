# SPDX-License-Identifier: GPL-2.0
"""Checks that misuse of the abstractions does not compile, for the intended reason.

Each file below kunit/compile_fail names the error code that rustc has to give, or `none` for the control, which
must compile. Without the control, a broken command line would pass for a refusal of every misuse. The command line
is the one with which the kernel's build compiled fs/dontcache.rs.
"""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from ..errors import Failure
from ..paths import BUILD, KERNEL_OUT, PROJECT
from .guest_tests import Counts

SAVED = "fs/.dontcache.o.cmd"
OUT = BUILD / "compile_fail"
PROGRAMS = PROJECT / "kunit" / "compile_fail"
EXPECTED = re.compile(r"^// compile error: (E\d{4}|none)$", re.MULTILINE)
SEEN = re.compile(r"^error\[(E\d{4})\]", re.MULTILINE)


def saved_command(file: Path) -> str:
    """How make compiled an object, as it has written it down for itself."""
    first = file.read_text().partition("\n")[0]
    if not first.startswith("savedcmd_"):
        raise Failure(f"{file} holds no command; run `make kernel` again")
    return first.partition(" := ")[2]


def errors_of(program: Path) -> str:
    """The codes of the errors that rustc finds in the program; none when it compiles."""
    rustc = re.sub(r"--out-dir \S+", f"--out-dir {OUT}", saved_command(KERNEL_OUT / SAVED).partition(";")[0])
    words = [word for word in rustc.split() if not word.startswith("--emit=") and not word.endswith("fs/dontcache.rs")]
    words += [f"--crate-name={program.stem}", "--emit=metadata", str(program)]
    environment = os.environ | {"RUSTC_BOOTSTRAP": "1"}  # as the kernel's Makefile has it
    done = subprocess.run(["sh", "-c", " ".join(words)], cwd=KERNEL_OUT, env=environment, capture_output=True, text=True)
    codes = sorted({*SEEN.findall(done.stderr)})
    if (done.returncode == 0) == bool(codes):
        raise Failure(f"rustc gave no verdict on {program.name}: {done.stderr.strip()[-300:]}")
    return " and ".join(codes) or "none"


def compared(title: str, files: list[Path], expected: re.Pattern[str], seen: Callable[[Path], str]) -> Counts:
    """Each file is a case, which fails if what is seen of it is not what it names."""
    counts = Counts()
    for file in sorted(files):
        match = expected.search(file.read_text())
        if match is None:
            raise Failure(f"{file.name} has no line like {expected.pattern}; add it")
        got = seen(file)
        counts.judge(f"{title}: {file.stem}", None if got == match[1] else f"expected {match[1]}, got {got}")
    return counts


def run() -> Counts:
    """What rustc says of each program."""
    OUT.mkdir(parents=True, exist_ok=True)
    return compared("compile-fail", [*PROGRAMS.glob("*.rs")], EXPECTED, errors_of)
