# SPDX-License-Identifier: GPL-2.0
"""make arm64: our objects, and those of the kernel that have our hooks, compiled for arm64.

With pages of 4 and of 64 KiB. Nothing is booted, and an emulator that keeps x86's order of memory would
prove nothing of arm64's: that is what the models are for.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path

from .. import paths, steps
from ..check.guest_tests import Counts
from ..progress import Bar
from ..run import must
from . import config, kernel, wiring

PAGES = (4, 64)
"""KiB."""

WHOLE_BUILD = 420
"""About the number of lines that make prints for a build from nothing."""

FILE = re.compile(r"^\+\+\+ b/(\S+)\n(.*?)(?=^--- |\Z)", re.MULTILINE | re.DOTALL)
ADDED = re.compile(r"^\+obj-\S+\s*\+= (.*)$", re.MULTILINE)


def objects(patches: Sequence[str]) -> list[str]:
    """What is compiled besides the kernel crate, which make does by itself: what Makefiles get, and the hooked."""
    names = []
    for patch in patches:
        for file, hunks in FILE.findall(patch):
            folder, _, name = file.rpartition("/")
            if name == "Makefile":
                names += [f"{folder}/{word}" for line in ADDED.findall(hunks) for word in line.split()]
            elif name.endswith(".c") and not folder.startswith("rust"):
                names.append(f"{folder}/{name[:-2]}.o")
    return [name for name in dict.fromkeys(names) if not name.endswith("_micro.o")]


def fragments_for(pages: int) -> list[Path]:
    """What the arm64 kernel with such pages is configured by."""
    return [paths.TOOLS / "config" / f"{name}.config" for name in ("objects", f"arm64-{pages}k")]


def make(pages: int, *targets: str) -> list[str]:
    """A make command of the arm64 kernel with such pages."""
    out = paths.BUILD / f"arm64-{pages}k"
    common = [f"--directory={paths.LINUX}", f"O={out}", "ARCH=arm64", "LLVM=1", f"CC={kernel.COMPILER}"]
    return ["make", f"-j{os.cpu_count() or 1}", *common, *targets]


def compile_for(pages: int, tree: str) -> None:
    """Configure and compile, unless that has been done with what is there."""
    fragments = fragments_for(pages)
    out = paths.BUILD / f"arm64-{pages}k"
    asked = config.merge(fragments)
    environment = kernel.make_environment()
    name = f"arm64 with pages of {pages} KiB"

    def build() -> None:
        steps.need_room(paths.BUILD, 0.5, "the objects for arm64")
        fresh = not (out / "rust").exists()
        steps.write_whole(out / "fragment.config", config.render(asked))
        command = make(pages, f"KCONFIG_ALLCONFIG={out / 'fragment.config'}", "allnoconfig")
        must(command, paths.LOG / f"config-arm64-{pages}k.log", f"the configuration for {name}", environment)
        config.check(asked, config.parse((out / ".config").read_text()))
        wanted = objects([path.read_text() for path in wiring.patches()])
        with Bar(f"compiling for {name}", WHOLE_BUILD if fresh else None) as bar:

            def count(line: str) -> None:
                if re.match(r"  [A-Z]", line):
                    bar.advance()

            log = paths.LOG / f"arm64-{pages}k.log"
            must(make(pages, "prepare", *wanted), log, f"the build for {name}", environment, count)
        steps.write_whole(out / "done", "\n".join(wanted))

    steps.step(f"arm64-{pages}k", steps.digest(tree, kernel.TOOLCHAIN, kernel.COMPILER, *fragments), [out / "done"], build)


def run() -> Counts:
    """Each size of pages is a case; what does not compile ends it."""
    counts = Counts()
    with steps.only_one("kernel"):
        tree = kernel.prepare()
        for pages in PAGES:
            compile_for(pages, tree)
            done: Path = paths.BUILD / f"arm64-{pages}k" / "done"
            print(f"arm64, pages of {pages} KiB: {len(done.read_text().splitlines())} objects and the kernel crate")
            counts.passed += 1
    return counts


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    argparse.ArgumentParser(prog="rust_writeback arm64", description=__doc__).parse_args(arguments)
    run()
    return 0
