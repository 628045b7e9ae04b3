# SPDX-License-Identifier: GPL-2.0
"""make kunit: the KUnit suites, by the kernel's own kunit.py: under user-mode Linux, or on an emulated arm64.

make test RT=1 runs them on an emulated x86 with PREEMPT_RT, which user-mode Linux does not have.

Under user-mode Linux they run once with both cores in the kernel, and once with Rust alone and the examples of the
kernel's Rust.

The emulator keeps x86's memory order, so it proves nothing about arm64's order. The models in rust/tests do that.
The emulator tests other page sizes, atomics and large folios.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from .. import arch as arches
from .. import paths, steps
from ..build import kernel
from ..errors import Parser
from ..progress import Bar
from ..run import logged, must
from ..vm import console
from . import guest_tests

RUST_TEST = re.compile(r"^ *# Subtest: rust_spinlock_irq_condvar$.*?^ok \d+ rust_spinlock_irq_condvar$", re.DOTALL | re.MULTILINE)
"""The kernel's own test of spinlocks in Rust takes interrupts to be off under them. PREEMPT_RT leaves them on."""


@dataclass(frozen=True)
class Platform:
    """What the suites run on."""

    name: str
    arch: str
    configs: tuple[Path, ...]

    @property
    def out(self) -> Path:
        return paths.BUILD / self.name


def _configs(*names: str) -> tuple[Path, ...]:
    return tuple(paths.TOOLS / "config" / f"{name}.config" for name in ("kunit", *names))


UML = Platform("kunit", "um", _configs("uml", "both-cores"))
ONE_CORE = replace(UML, name="kunit-one-core", configs=_configs("uml", "doctests"))
RT = Platform("kunit-rt", "x86_64", _configs("kunit-emulated", "kunit-rt", "both-cores"))


def arm64(pages: str) -> Platform:
    """An emulated arm64 with pages of that size, and Rust alone.

    The suites that compare change the core for each trial: an emulator takes minutes to patch arm64's code.
    """
    return Platform(f"kunit-arm64-{pages}", "arm64", _configs("kunit-emulated", "kunit-arm64", f"arm64-{pages}"))


def _kunit(platform: Platform, command: str, *arguments: str) -> list[str]:
    options = [f"--make_options={option}" for option in ("LLVM=1", f"CC={kernel.COMPILER}", kernel.QUIET)]
    options += [f"--kunitconfig={config}" for config in platform.configs]
    script = "tools/testing/kunit/kunit.py"
    return [script, command, f"--arch={platform.arch}", f"--build_dir={platform.out}", *options, *arguments]


def _emulated(platform: Platform) -> list[str]:
    """Without kunit.py, which takes a /dev/kvm for one that works."""
    command = ["timeout", "600", "qemu-system-x86_64", "-nodefaults", "-accel", "tcg", "-m", "1G"]
    command += ["-kernel", str(platform.out / arches.X86.place), "-no-reboot", "-nographic", "-serial", "stdio"]
    return [*command, "-append", "console=ttyS0 kunit.enable=1 kunit_shutdown=reboot panic=-1"]


def run(platform: Platform = UML) -> guest_tests.Counts:
    """Build, run every suite, and count what the KTAP says."""
    environment, ktap = kernel.make_environment(), paths.LOG / f"{platform.name}.ktap"
    with steps.only_one("kernel"):
        kernel.prepare()
        steps.need_room(paths.BUILD, 0.5 if (platform.out / "vmlinux").exists() else 1.5, "the KUnit kernel")
        with Bar(f"building the {platform.name} kernel"):
            log = paths.LOG / f"{platform.name}-build.log"
            must(_kunit(platform, "build"), log, "the KUnit kernel's build", environment, cwd=paths.LINUX)
        command = _emulated(platform) if platform == RT else _kunit(platform, "run", "--raw_output=all", "--timeout=600")
        status = logged(command, ktap, environment, cwd=paths.LINUX)
    output = ktap.read_text(errors="replace")
    counts = guest_tests.parse(f"build/log/{ktap.name}", output, status)
    # lockdep of user-mode Linux warns of itself at boot, and turns itself off.
    if platform == RT and (said := console.warning(RUST_TEST.sub("", output))):
        counts.fail(f"the KUnit kernel warned: {said}; see build/log/{ktap.name}")
    return counts


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    parser = Parser(prog="rust_writeback kunit", description=__doc__)
    parser.add_argument("--arch", help="arm64 instead of user-mode Linux")
    parser.add_argument("--pages", help=f"the size of its pages: {', '.join(arches.ARM64.pages)}")
    known = parser.parse_args(arguments)
    _, size = arches.chosen(known.arch, known.pages)
    counts = guest_tests.Counts()
    for platform in [arm64(size)] if size else [UML, ONE_CORE]:
        counts.add(run(platform))
    return counts.told()
