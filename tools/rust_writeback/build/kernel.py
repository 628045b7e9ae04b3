# SPDX-License-Identifier: GPL-2.0
"""make kernel: from the fetched source to build/bzImage and build/.config, or the same for another architecture."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .. import paths, steps
from ..arch import ARCHES, X86, Arch, chosen
from ..errors import Parser
from ..progress import Bar
from ..run import must
from . import config, fetch, overlay
from .variants import MEASURED, Variant, of_arch

TOOLCHAIN = Path("/var/lib/dpkg/status")
"""Changes with every version of every package of the build root."""

COMPILER = paths.TOOLS / "kernel-cc"

WHOLE_BUILD = 2350
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


QUIET = "KCFLAGS=-w"
"""No warnings: clang takes a quarter of its time to look for them, nearly all of it in the kernel's own headers."""

STRICT = "KCFLAGS=-Werror"
"""Where only our own objects are compiled, and those with our hooks."""


def make(
    *arguments: str,
    out: Path = paths.KERNEL_OUT,
    arch: Arch = X86,
    warnings: str = QUIET,
    tree: Path = paths.LINUX,
) -> list[str]:
    """A make command of the kernel."""
    return [
        "make",
        f"-j{os.cpu_count() or 1}",
        f"--directory={tree}",
        f"O={out}",
        *([f"ARCH={arch.name}"] if arch != X86 else []),
        "LLVM=1",
        f"CC={COMPILER}",
        warnings,
        *arguments,
    ]


def prepare() -> str:
    """Bring build/linux up to date; the result changes whenever the tree does."""
    origin, key = fetch.source()
    steps.step("unpack", key, [paths.LINUX], lambda: fetch.unpack(origin))
    _, version = fetch.kernel_version(paths.LINUX)
    overlay.apply(version)
    ours = [paths.PROJECT / source for source in overlay.read_allowlist()]
    return steps.digest(key, overlay.ALLOWLIST, *ours, *overlay.patches())


def configured(
    asked: dict[str, str], out: Path, suffix: str, *options: str, arch: Arch = X86, tree: Path = paths.LINUX
) -> None:
    """Make a .config of what is asked for, and check it."""
    fragment = out / "fragment.config"
    steps.write_whole(fragment, config.render(asked))
    command = make(*options, f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig", out=out, arch=arch, tree=tree)
    must(command, paths.LOG / f"config{suffix}.log", "the kernel's configuration", make_environment())
    config.check(asked, config.parse((out / ".config").read_text()))


def configure(tree: str, variant: Variant) -> None:
    """Make the kernel's .config from the fragments and check it."""
    key = steps.digest(tree, TOOLCHAIN, COMPILER, *variant.fragments)
    asked = config.merge(variant.fragments)
    action = partial(configured, asked, variant.out, variant.suffix, *variant.options, arch=variant.arch)
    steps.step(f"config{variant.suffix}", key, [variant.out / ".config"], action)


def build(tree: str, variant: Variant, inside: Sequence[str] = ()) -> None:
    """Compile, incrementally, and put the image in its place; make may run inside another command."""
    dot_config = variant.out / ".config"
    headers = [header for _, header in variant.headers]
    key = steps.digest(tree, TOOLCHAIN, COMPILER, dot_config, *variant.options, *headers)

    def compile_kernel() -> None:
        fresh = not (variant.out / "vmlinux").exists()
        steps.need_room(paths.BUILD, 2.0 if fresh else 0.5, "the kernel's objects")
        steps.need_room(paths.CACHE, 1.0 if fresh else 0.1, "the compiler's cache")
        title = f"building the kernel {variant.suffix.removeprefix('-')}".strip()
        log = paths.LOG / f"kernel{variant.suffix}.log"
        with Bar(title, WHOLE_BUILD if fresh else None) as bar:
            target = make(*variant.options, variant.arch.image, out=variant.out, arch=variant.arch)
            command = [*inside, *target]
            must(command, log, "the kernel build", make_environment(), bar.count_built)
        image = variant.out / variant.arch.place
        steps.write_whole(variant.dot_config, dot_config.read_bytes())
        steps.write_whole(variant.image, image.read_bytes())
        variant.image.chmod(0o755)

    steps.step(f"kernel{variant.suffix}", key, [variant.image, variant.dot_config], compile_kernel)


def ensure(variant: Variant = MEASURED) -> None:
    """Have the image match the sources: build/bzImage unless another kernel is asked for."""
    with steps.only_one("kernel"):
        tree = prepare()
        configure(tree, variant)
        build(tree, variant)


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    parser = Parser(prog="rust_writeback kernel", description=__doc__)
    parser.add_argument("--arch", help=f"the kernel of this architecture: {', '.join(ARCHES)}")
    parser.add_argument("--pages", help="the size of its pages, where that may be chosen")
    known = parser.parse_args(arguments)
    variant = of_arch(*chosen(known.arch, known.pages))
    ensure(variant)
    print(f"{variant.image.relative_to(paths.PROJECT)} is up to date")
    return 0
