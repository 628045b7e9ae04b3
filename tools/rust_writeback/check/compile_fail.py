# SPDX-License-Identifier: GPL-2.0
"""Checks that misuse of the abstractions does not compile, for the intended reason.

Each file below kunit/compile_fail names the error code that rustc has to give, or `none` for the control, which
must compile. Without the control, a broken command line would pass for a refusal of every misuse. The command line
is the one with which the kernel's build compiled fs/dontcache.rs.
"""

import os
import re
import subprocess
from pathlib import Path

from ..errors import Failure
from ..paths import BUILD, PROJECT
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


def errors_of(program: Path, kernel: Path) -> set[str]:
    """The codes of the errors that rustc finds in the program; empty when it compiles."""
    rustc = re.sub(r"--out-dir \S+", f"--out-dir {OUT}", saved_command(kernel / SAVED).partition(";")[0])
    words = [word for word in rustc.split() if not word.startswith("--emit=") and not word.endswith("fs/dontcache.rs")]
    words += [f"--crate-name={program.stem}", "--emit=metadata", str(program)]
    # As the kernel's Makefile has it.
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    done = subprocess.run(["sh", "-c", " ".join(words)], cwd=kernel, env=environment, capture_output=True, text=True)
    codes = set(SEEN.findall(done.stderr))
    if (done.returncode == 0) == bool(codes):
        raise Failure(f"rustc gave no verdict on {program.name}: {done.stderr.strip()[-300:]}")
    return codes


def run(kernel: Path = BUILD / "kernel") -> Counts:
    """Each program is a case, which fails if rustc's verdict on it is not the one that it names."""
    OUT.mkdir(parents=True, exist_ok=True)
    counts = Counts()
    for program in sorted(PROGRAMS.glob("*.rs")):
        match = EXPECTED.search(program.read_text())
        if match is None:
            raise Failure(f"{program.name} names no compile error; add `// compile error: CODE`")
        seen = " and ".join(sorted(errors_of(program, kernel))) or "none"
        counts.judge(f"compile-fail: {program.stem}", None if seen == match[1] else f"expected {match[1]}, got {seen}")
    return counts
