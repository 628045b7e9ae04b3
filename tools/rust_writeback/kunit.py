# SPDX-License-Identifier: GPL-2.0
"""make kunit: the KUnit suites under user-mode Linux, by the kernel's own kunit.py."""

from __future__ import annotations

import argparse
import os
import re

from . import guest_tests, kernel, paths, steps
from .errors import Failure
from .progress import Bar
from .run import logged, must

OUT = paths.BUILD / "kunit"
CONFIG = paths.TOOLS / "config" / "uml.config"
KTAP = paths.LOG / "kunit.ktap"
BUILD_LOG = paths.LOG / "kunit-build.log"

WHOLE_BUILD = 1200
"""About the number of lines that make prints for a build from nothing."""

MAKE_OPTIONS = ("LLVM=1", f"CC={kernel.COMPILER}")


def _kunit(command: str, *arguments: str) -> list[str]:
    options = [f"--make_options={option}" for option in MAKE_OPTIONS]
    return ["tools/testing/kunit/kunit.py", command, f"--build_dir={OUT}", f"--kunitconfig={CONFIG}", *options, *arguments]


def build() -> None:
    """Configure and compile. kunit.py checks the configuration and would compile, but without a word."""
    steps.need_room(paths.BUILD, 0.5 if (OUT / "linux").exists() else 1.5, "the KUnit kernel")
    environment = kernel.make_environment()
    OUT.mkdir(parents=True, exist_ok=True)
    must(_kunit("config"), paths.LOG / "kunit-config.log", "the KUnit kernel's configuration", environment, cwd=paths.LINUX)
    command = ["make", f"-j{os.cpu_count() or 1}", "ARCH=um", f"O={OUT}", *MAKE_OPTIONS, "all"]
    with Bar("building the KUnit kernel", None if (OUT / "linux").exists() else WHOLE_BUILD) as bar:

        def count(line: str) -> None:
            if re.match(r"  [A-Z]", line):
                bar.advance()

        must(command, BUILD_LOG, "the KUnit kernel's build", environment, count, cwd=paths.LINUX)


def run() -> guest_tests.Counts:
    """Build, run every suite, and count what the KTAP says."""
    with steps.only_one("kernel"):
        kernel.prepare()
        build()
        command = _kunit("run", "--raw_output=all", "--timeout=600")
        status = logged(command, KTAP, kernel.make_environment(), cwd=paths.LINUX)
    output = KTAP.read_text(errors="replace")
    if "KTAP version" not in output:
        raise Failure(f"the KUnit kernel told no test (status {status}); see build/log/{KTAP.name}")
    return guest_tests.parse("kunit", output, status)


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    argparse.ArgumentParser(prog="rust_writeback kunit", description=__doc__).parse_args(arguments)
    counts = run()
    for problem in counts.problems:
        print(f"kunit: failed: {problem}")
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped", flush=True)
    return 1 if counts.failed or not counts.passed else 0
