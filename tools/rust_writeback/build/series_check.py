# SPDX-License-Identifier: GPL-2.0
"""make series CHECK=1: build, check and boot the patches as a maintainer would.

The patches are applied one by one to a copy of the pristine tree. After each the kernel is built with the core
(clippy, a warning is an error) and without, and the patch has to pass checkpatch --strict.
The kernel that the patches for merging make is booted in the virtual machine, and written to with DONTCACHE.
The copy shares its files with build/linux by links, which a patch program replaces and does not write through.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from .. import paths, steps
from ..check import guest_tests, lint
from ..errors import Failure
from ..run import must
from . import config, fetch, kernel, overlay, series
from .variants import Variant

TREE = paths.BUILD / "series-linux"
CONFIG = paths.TOOLS / "config"
FRAGMENTS = [CONFIG / "objects.config", CONFIG / "series.config"]
MODULES = CONFIG / "series-modules.config"
CORE = "CONFIG_RUST_WRITEBACK"
BOOTED = Variant(copy="series")
"""The kernel that a tree has with the patches for merging alone, in the virtual machine."""
WRITTEN = "dontcache_write_data"
"""The guest test that it has to pass. It has no file that tells its core: it was built with the one in Rust alone."""


def pristine() -> None:
    """The kernel's tree as it was before our first file."""
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(paths.LINUX, TREE, symlinks=True, copy_function=os.link)
    for place in overlay.read_allowlist().values():
        (TREE / place).unlink()
    for patch in overlay.patches():
        for name in overlay.touched(patch):
            steps.write_whole(TREE / name, (series.ORIGINALS / name).read_bytes())


def known(options: dict[str, str]) -> dict[str, str]:
    """A configuration, as far as the tree knows of it by now."""
    kconfig = "".join(path.read_text() for path in (TREE / "mm").glob("Kconfig.rust_writeback*"))
    there = {f"CONFIG_{name}" for name in re.findall(r"^config (\S+)$", kconfig, re.MULTILINE)}
    return {name: value for name, value in options.items() if not name.startswith(CORE) or name in there}


def asked(kind: str) -> dict[str, str]:
    """The configuration of a kind of build."""
    options = known(config.merge([*FRAGMENTS, MODULES] if kind == "modules" else FRAGMENTS))
    off = {name: "n" for name in options if name.startswith(CORE)} if kind == "without" else {}
    return options | off


def compiled(out: Path, wanted: dict[str, str], name: str, *targets: str) -> None:
    """Configure and build in a folder; a warning is an error."""
    kernel.configured(wanted, out, f"-{name}", tree=TREE)
    rust = ["CLIPPY=1", "KRUSTFLAGS=-Dwarnings"] if wanted.get(CORE) == "y" else []
    command = kernel.make(*rust, *targets, out=out, warnings="KCFLAGS=", tree=TREE)
    log = paths.LOG / f"{name}.log"
    must(command, log, f"the build of {name}", kernel.make_environment())
    if warning := re.search(r"^.*\bwarning: .*$", log.read_text(errors="replace"), re.MULTILINE | re.IGNORECASE):
        raise Failure(f"the build of {name} warns: {warning[0]}")


def check(number: int, last: bool) -> None:
    """Build after a patch that is applied, with and without the core, and after the last with modules."""
    for kind in ("with", "without", *(["modules"] if last else [])):
        targets = ["vmlinux", *(["modules"] if kind == "modules" else [])]
        compiled(paths.BUILD / f"series-{kind}", asked(kind), f"series-{number:02}-{kind}", *targets)


def boot(number: int) -> None:
    """Build what the patches for merging make as the kernel of the virtual machine, and write with DONTCACHE on it."""
    compiled(BOOTED.out, known(config.merge(BOOTED.fragments)), f"series-{number:02}-boot", "bzImage")
    steps.write_whole(BOOTED.image, (BOOTED.out / BOOTED.arch.place).read_bytes())
    options = replace(guest_tests.options_for(BOOTED), check_core=False)
    counts = guest_tests.run_core("rust", guest_tests.find_scripts([WRITTEN]), options)
    if counts.failed or not counts.passed:
        raise Failure(f"the kernel that the patches make does not pass: {'; '.join(counts.problems) or 'nothing ran'}")


def run(made: Sequence[Path]) -> int:
    """The mails first, and then each patch in turn; the first that is wrong ends it.

    What was built with the same patches before is not built again.
    """
    steps.need_room(paths.BUILD, 3.0, "the kernels and a tree")
    patches = made[1:]  # without the cover letter
    with steps.only_one("kernel"):
        pristine()
        ignored = lint.CHECKPATCH_IGNORE - {"COMMIT_MESSAGE"}
        refused = [f"{patch.name}: checkpatch: {said}" for patch in patches if (said := lint.checkpatch([patch], TREE, ignored))]
        if refused:
            print("\n".join(refused))
            return 1
        key = steps.digest(fetch.source()[1], kernel.TOOLCHAIN, kernel.COMPILER, *FRAGMENTS, MODULES)
        for number, patch in enumerate(patches, 1):
            command = ["patch", "-p1", "-F0", "--batch", "--forward", "--quiet", "-d", str(TREE), "-i", str(patch)]
            if subprocess.run(command, check=False).returncode:
                raise Failure(f"{patch.name} does not apply; correct tools/series.toml")
            key = steps.digest(key, patch.read_text().partition("\ndiff ")[2])
            steps.step(f"series-{number:02}", key, [], partial(check, number, patch is patches[-1]))
            print(f"{patch.name}: ok", flush=True)
            if number == len(patches) - 1:
                booted = steps.digest(key, *BOOTED.fragments, guest_tests.TESTS / f"test_{WRITTEN}.py")
                steps.step("series-boot", booted, [BOOTED.image], partial(boot, number))
    return 0
