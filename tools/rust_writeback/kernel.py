# SPDX-License-Identifier: GPL-2.0
"""make kernel: from the fetched source to build/bzImage and build/.config."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from . import config, fetch, overlay, paths, steps, wiring
from .progress import Bar
from .run import must

FRAGMENTS = [paths.TOOLS / "config" / name for name in ("x86.config", "writeback.config")]
LOG_FILE = paths.LOG / "kernel.log"

TOOLCHAIN = Path("/var/lib/dpkg/status")
"""Changes with every version of every package of the build root."""

WHOLE_BUILD = 1800
"""About the number of lines that make prints for a build from nothing."""


def make_environment() -> dict[str, str]:
    """The environment of every kernel build.

    Who builds, where and when is fixed, so that the same source gives the same
    image, and ccache finds what another checkout compiled.
    """
    return {
        **os.environ,
        "CCACHE_DIR": str(paths.CACHE / "ccache"),
        "CCACHE_MAXSIZE": "3G",
        # Without it a miss is preprocessed twice, a third of a cold build.
        "CCACHE_DEPEND": "1",
        "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
        "KBUILD_BUILD_USER": "rust-writeback",
        "KBUILD_BUILD_HOST": "localhost",
    }


def make(*arguments: str, out: Path = paths.KERNEL_OUT) -> list[str]:
    """A make command of the x86 kernel."""
    return [
        "make",
        f"-j{os.cpu_count() or 1}",
        f"--directory={paths.LINUX}",
        f"O={out}",
        "LLVM=1",
        "CC=ccache clang",
        *arguments,
    ]


def prepare() -> str:
    """Bring build/linux up to date; the result changes whenever the tree does."""
    origin = fetch.source()
    steps.step("unpack", origin.key, [paths.LINUX], lambda: fetch.unpack(origin))
    key = steps.digest(origin.key, *overlay.inputs(), *wiring.patches())

    def patch() -> None:
        _, version = fetch.kernel_version(paths.LINUX)
        overlay.apply()
        wiring.apply(version)

    steps.step("patch", key, [paths.LINUX], patch)
    return key


def configure(tree: str) -> None:
    """Make the kernel's .config from the fragments and check it."""
    key = steps.digest(tree, TOOLCHAIN, *FRAGMENTS)
    result = paths.KERNEL_OUT / ".config"
    asked = config.merge(FRAGMENTS)

    def merge() -> None:
        fragment = paths.KERNEL_OUT / "fragment.config"
        steps.write_whole(fragment, config.render(asked))
        command = make(f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig")
        must(command, paths.LOG / "config.log", "the kernel's configuration", make_environment())
        config.check(asked, config.parse(result.read_text()))

    steps.step("config", key, [result], merge)


def build(tree: str) -> None:
    """Compile, incrementally, and put the image in its place."""
    dot_config = paths.KERNEL_OUT / ".config"
    key = steps.digest(tree, TOOLCHAIN, dot_config)

    def compile_kernel() -> None:
        fresh = not (paths.KERNEL_OUT / "vmlinux").exists()
        steps.need_room(paths.BUILD, 2.0 if fresh else 0.5, "the kernel's objects")
        steps.need_room(paths.CACHE, 1.0 if fresh else 0.1, "the compiler's cache")
        with Bar("building the kernel", WHOLE_BUILD if fresh else None) as bar:

            def count(line: str) -> None:
                if re.match(r"  [A-Z]", line):
                    bar.advance()

            must(make("bzImage"), LOG_FILE, "the kernel build", make_environment(), count)
        image = paths.KERNEL_OUT / "arch/x86/boot/bzImage"
        steps.write_whole(paths.DOT_CONFIG, dot_config.read_bytes())
        steps.write_whole(paths.BZIMAGE, image.read_bytes())

    steps.step("kernel", key, [paths.BZIMAGE, paths.DOT_CONFIG], compile_kernel)


def ensure() -> None:
    """Have build/bzImage match the sources."""
    with steps.only_one("kernel"):
        tree = prepare()
        configure(tree)
        build(tree)


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    argparse.ArgumentParser(prog="rust_writeback kernel", description=__doc__).parse_args(arguments)
    ensure()
    print(f"{paths.BZIMAGE.relative_to(paths.PROJECT)} is up to date")
    return 0
