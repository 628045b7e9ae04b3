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

SAVED = Path("fs/.dontcache.o.cmd")
PROGRAMS = PROJECT / "kunit" / "compile_fail"
EXPECTED = re.compile(r"^// compile error: (E\d{4}|none)$", re.MULTILINE)
SEEN = re.compile(r"^error\[(E\d{4})\]", re.MULTILINE)


def rustc_command(saved: str, program: Path, crate: str) -> str:
    """The saved command of a kernel object, for another program and with nothing to show for it."""
    match = re.match(r"savedcmd_\S+ := (.*?)(?: ;|;|$)", saved.splitlines()[0])
    if match is None:
        raise Failure(f"{SAVED} holds no command; run `make kernel` again")
    words = [word for word in match.group(1).split() if not word.startswith("--emit=")]
    words = [word for word in words if not word.endswith("fs/dontcache.rs")]
    return " ".join([*words, f"--crate-name={crate}", "--emit=metadata", str(program)])


def errors_of(program: Path, kernel: Path, out: Path) -> set[str]:
    """The codes of the errors that rustc finds in the program; empty when it compiles."""
    saved = (kernel / SAVED).read_text()
    command = rustc_command(saved, program, program.stem)
    command = re.sub(r"--out-dir \S+", f"--out-dir {out}", command)
    # As the kernel's Makefile has it.
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    done = subprocess.run(["sh", "-c", command], cwd=kernel, env=environment, capture_output=True, text=True)
    codes = set(SEEN.findall(done.stderr))
    if (done.returncode == 0) == bool(codes) or (done.returncode and not codes):
        raise Failure(f"rustc gave no verdict on {program.name}: {done.stderr.strip()[-300:]}")
    return codes


def run(kernel: Path = BUILD / "kernel") -> list[tuple[str, str | None]]:
    """Each program with what is wrong with rustc's verdict on it, or None."""
    out = BUILD / "compile_fail"
    out.mkdir(parents=True, exist_ok=True)
    verdicts: list[tuple[str, str | None]] = []
    for program in sorted(PROGRAMS.glob("*.rs")):
        match = EXPECTED.search(program.read_text())
        if match is None:
            raise Failure(f"{program.name} names no compile error; add `// compile error: CODE`")
        expected = set() if match.group(1) == "none" else {match.group(1)}
        seen = errors_of(program, kernel, out)
        wrong = None if seen == expected else f"expected {expected or 'none'}, got {seen or 'none'}"
        verdicts.append((program.stem, wrong))
    if not verdicts:
        raise Failure(f"no programs in {PROGRAMS}; restore the programs that must not compile")
    return verdicts
