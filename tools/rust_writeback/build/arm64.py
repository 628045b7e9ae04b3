# SPDX-License-Identifier: GPL-2.0
"""make arm64: our objects, and those of the kernel that have our hooks, compiled for arm64.

With the smallest pages and the largest. A warning is an error. Nothing is booted here: make test ARCH=arm64 does that.
"""

from collections.abc import Sequence
from pathlib import Path

from .. import paths, steps
from ..arch import ARM64
from ..check.guest_tests import Counts
from ..errors import Parser
from ..progress import Bar
from ..run import must
from . import config, kernel, overlay

SIZES = (ARM64.pages[0], ARM64.pages[-1])
"""Of the pages that are compiled for."""
WHOLE_BUILD = 420
"""About the number of lines that make prints for a build from nothing."""

def objects() -> list[str]:
    """What is compiled besides the kernel crate, which make does by itself: the hooked, and what Makefiles get."""
    patches = overlay.patches()
    hooked = [name for patch in patches for name in overlay.touched(patch)]
    added = "".join(patch.read_text() for patch in patches)
    ours = [name for name in overlay.read_allowlist().values() if f" {Path(name).stem}.o" in added]
    sources = [Path(name) for name in hooked + ours if name.endswith((".c", ".rs")) and not name.startswith("rust/")]
    return [str(path.with_suffix(".o")) for path in dict.fromkeys(sources) if not path.stem.endswith("_micro")]


def compile_for(pages: str, wanted: Sequence[str]) -> None:
    """Configure and compile, incrementally."""
    fragments = [paths.TOOLS / "config" / f"{name}.config" for name in ("objects", f"arm64-{pages}")]
    out = paths.BUILD / f"arm64-{pages}"
    name = f"arm64 with pages of {pages}"
    steps.need_room(paths.BUILD, 0.5, "the objects for arm64")
    fresh = not (out / "rust").exists()
    kernel.configured(config.merge(fragments), out, f"-arm64-{pages}", arch=ARM64)
    with Bar(f"compiling for {name}", WHOLE_BUILD if fresh else None) as bar:
        log = paths.LOG / f"arm64-{pages}.log"
        command = kernel.make("prepare", *wanted, out=out, arch=ARM64, warnings=kernel.STRICT)
        must(command, log, f"the build for {name}", kernel.make_environment(), bar.count_built)


def run() -> Counts:
    """Each size of pages is a case; what does not compile ends it."""
    counts = Counts()
    with steps.only_one("kernel"):
        kernel.prepare()
        wanted = objects()
        for pages in SIZES:
            compile_for(pages, wanted)
            print(f"arm64, pages of {pages}: {len(wanted)} objects and the kernel crate")
            counts.passed += 1
    return counts


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    Parser(prog="rust_writeback arm64", description=__doc__).parse_args(arguments)
    run()
    return 0
