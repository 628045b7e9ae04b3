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
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from .. import paths, steps
from ..check import guest_tests, lint
from ..errors import Failure
from ..run import logged, relevant_lines
from . import config, fetch, kernel, overlay, series, wiring
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
    for patch in wiring.patches():
        for name in wiring.touched(patch):
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


def compiled(out: Path, wanted: dict[str, str], log: Path, *targets: str) -> str | None:
    """Configure and build in a folder; what is wrong, or None."""
    fragment = out / "fragment.config"
    steps.write_whole(fragment, config.render(wanted))
    rust = ["CLIPPY=1", "KRUSTFLAGS=-Dwarnings"] if wanted.get(CORE) == "y" else []
    common = [f"--directory={TREE}", f"O={out}", "LLVM=1", f"CC={kernel.COMPILER}", *rust]
    make = ["make", f"-j{os.cpu_count() or 1}", *common]
    if logged([*make, f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig"], log, kernel.make_environment()):
        return "\n".join(["cannot be configured:", *relevant_lines(log)])
    config.check(wanted, config.parse((out / ".config").read_text()))
    if logged([*make, *targets], log, kernel.make_environment()):
        return "\n".join(["does not build:", *relevant_lines(log)])
    if warning := re.search(r"^.*\bwarning: .*$", log.read_text(errors="replace"), re.MULTILINE | re.IGNORECASE):
        return f"warns: {warning[0]}"
    return None


def build(kind: str, number: int) -> str | None:
    """Build what there is now, with or without the core or with modules; what is wrong, or None."""
    log = paths.LOG / f"series-{number:02}-{kind}.log"
    targets = ["vmlinux", *(["modules"] if kind == "modules" else [])]
    wrong = compiled(paths.BUILD / f"series-{kind}", asked(kind), log, *targets)
    return f"{kind}: {wrong}" if wrong else None


def mail(patch: Path) -> str | None:
    """What checkpatch says of a patch; None if nothing."""
    ignore = f"--ignore={','.join(sorted(lint.CHECKPATCH_IGNORE - {'COMMIT_MESSAGE'}))}"
    script = str(TREE / "scripts" / "checkpatch.pl")
    command = [script, "--strict", "--quiet", "--show-types", "--no-signoff", ignore, f"--root={TREE}", str(patch)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"checkpatch: {said.stdout.strip()}" if said.returncode or said.stdout.strip() else None


def check(patch: Path, number: int, kinds: Sequence[str]) -> None:
    """Build after a patch that is applied, in each way."""
    for kind in kinds:
        if wrong := build(kind, number):
            raise Failure(f"{patch.name}: {wrong}")


def boot(number: int) -> None:
    """Build what the patches for merging make as the kernel of the virtual machine, and write with DONTCACHE on it."""
    log = paths.LOG / f"series-{number:02}-boot.log"
    if wrong := compiled(BOOTED.out, known(config.merge(BOOTED.fragments)), log, "bzImage"):
        raise Failure(f"the kernel to boot: {wrong}")
    steps.write_whole(BOOTED.image, (BOOTED.out / "arch/x86/boot/bzImage").read_bytes())
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
        if refused := [f"{patch.name}: {said}" for patch in patches if (said := mail(patch))]:
            print("\n".join(refused))
            return 1
        origin = fetch.source().key
        key = steps.digest(origin, kernel.TOOLCHAIN, kernel.COMPILER, *FRAGMENTS, MODULES)
        for number, patch in enumerate(patches, 1):
            start = time.monotonic()
            command = ["patch", "-p1", "-F0", "--batch", "--forward", "--quiet", "-d", str(TREE), "-i", str(patch)]
            if subprocess.run(command, check=False).returncode:
                raise Failure(f"{patch.name} does not apply; correct tools/series.toml")
            kinds = ["with", "without", *(["modules"] if number == len(patches) else [])]
            key = steps.digest(key, patch.read_text().partition("\ndiff ")[2])
            new = steps.step(f"series-{number:02}", key, [], partial(check, patch, number, kinds))
            took = f"{time.monotonic() - start:.0f} s" if new else "as it was"
            print(f"{patch.name}: ok ({took})", flush=True)
            if number == len(patches) - 1:
                booted = steps.digest(key, *BOOTED.fragments, guest_tests.TESTS / f"test_{WRITTEN}.py")
                steps.step("series-boot", booted, [BOOTED.image], partial(boot, number))
    return 0
