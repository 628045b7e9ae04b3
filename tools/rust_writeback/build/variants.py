# SPDX-License-Identifier: GPL-2.0
"""The kernels that can be built: the one that is measured, one with more drivers, one for each sanitizer, and arm64's."""

from dataclasses import dataclass, replace
from pathlib import Path

from .. import paths
from ..arch import UM, X86, Arch


RUST_FLAGS = "-mllvm -trap-unreachable -mllvm -no-trap-after-noreturn"
"""The kernel's own flags for compiling the Rust that is linked with its helpers."""


@dataclass(frozen=True)
class Variant:
    """One kernel: what is asked of its configuration, where it is built, and what its guest needs.

    The flags are for the compiler of the kernel's Rust, the parameters are the kernel's. On a kernel
    with a slowness of 3 the guest tests take about three times as long. LKDTM's crash, if there is one
    for a sanitizer, is reported by it in these words. One that is asked has an opinion at the end.
    One without a name may be a copy of the measured kernel, in files of its own, or another architecture's.
    """

    name: str = ""
    copy: str = ""
    mem: str = "2G"
    flags: str = ""
    parameters: str = ""
    slowness: int = 1
    crash: str = ""
    report: str = ""
    asked: bool = False
    arch: Arch = X86
    pages: str = ""
    configs: tuple[str, ...] = ()
    """The names of its fragments, where they are not those of a guest."""
    headers: tuple[tuple[str, Path], ...] = ()
    """What is compiled into files of the kernel besides, by their names."""

    @property
    def fragments(self) -> list[Path]:
        """The configuration, from the general to the special."""
        names = [*self.configs] or [self.arch.name, "guest", "writeback", *(["sanitizer"] if self.name in SANITIZERS else [])]
        names += [self.name] if self.name else []
        names += [f"{self.arch.name}-{self.pages}"] if self.pages else []
        return [paths.TOOLS / "config" / f"{name}.config" for name in names]

    @property
    def options(self) -> list[str]:
        """More words for make. They replace what arch/um has for these files: for one of them, the limit."""
        words = [f"CFLAGS_{name}.o=-include {header} -Wframe-larger-than=4096" for name, header in self.headers]
        return words + ([f"CC_FLAGS_RUST_INLINE_HELPERS={RUST_FLAGS} {self.flags}"] if self.flags else [])

    @property
    def suffix(self) -> str:
        """What tells its files from those of the measured kernel."""
        words = [self.arch.name if self.arch != X86 else "", self.pages, self.name or self.copy]
        return "".join(f"-{word}" for word in words if word)

    @property
    def out(self) -> Path:
        """The build folder (O=)."""
        return paths.KERNEL_OUT.with_name(paths.KERNEL_OUT.name + self.suffix)

    @property
    def image(self) -> Path:
        """What is booted."""
        return paths.BUILD / f"{self.arch.image}{self.suffix}"

    @property
    def dot_config(self) -> Path:
        """The configuration of the image."""
        return paths.DOT_CONFIG.with_name(paths.DOT_CONFIG.name + self.suffix)


MEASURED = Variant()

NATIVE = Variant(
    arch=UM,
    configs=("native", "writeback"),
    headers=(
        ("um_arch", paths.TOOLS / "config" / "native_clock.h"),
        ("signal", paths.TOOLS / "config" / "native_signals.h"),
    ),
)
"""User-mode Linux, with drives in its memory."""

STACKS = Variant("stacks", parameters="isolcpus=3 nohz_full=3 memmap=320M!1G")
"""The measured kernel with what people put between a file system and a drive. The last of four CPUs is isolated.

Some of its memory is /dev/pmem0, a drive for DAX.
"""

KCSAN_FLAGS = (
    "-fsanitize=thread -fno-optimize-sibling-calls -mllvm -force-attribute=sanitize_thread"
    " -mllvm -tsan-compound-read-before-write=1 -mllvm -tsan-distinguish-volatile=1"
    " -mllvm -tsan-instrument-func-entry-exit=0"
)
"""What scripts/Makefile.kcsan has for C, and that it is meant for every function."""

REPORT = "WARNING: lock held when returning to user space"
LOCKDEP = Variant("lockdep", slowness=3, crash="SPINLOCKUP", report=REPORT, asked=True)
SANITIZERS = {
    variant.name: variant
    for variant in (
        Variant(
            "kasan",
            mem="3G",
            # The first report stops the guest, so that the script that was running is blamed for it.
            parameters="kasan.fault=panic",
            slowness=3,
            crash="WRITE_AFTER_FREE",
            report="BUG: KASAN: slab-use-after-free",
        ),
        Variant("kcsan", flags=KCSAN_FLAGS, slowness=4, asked=True),
        Variant("kmemleak", mem="3G", slowness=3, asked=True),
        LOCKDEP,
        replace(LOCKDEP, name="rt"),
        Variant(
            "ubsan",
            parameters="page_poison=1",
            slowness=2,
            crash="ARRAY_BOUNDS",
            report="UBSAN: array-index-out-of-bounds",
        ),
    )
}


def of_arch(arch: Arch, pages: str) -> Variant:
    """The kernel of an architecture, with both cores: the measured one is x86's."""
    return MEASURED if arch == X86 else Variant(arch=arch, pages=pages)
