# SPDX-License-Identifier: GPL-2.0
"""The architectures for which a kernel is built and booted, and the names that differ between them."""

from dataclasses import dataclass

from .errors import Failure


@dataclass(frozen=True)
class Arch:
    """One of them. The name is the kernel's (ARCH=), the others are Debian's and make's; its pages may be chosen."""

    name: str
    debian: str
    triple: str
    image: str
    place: str
    """Where make leaves the image, below its folder."""
    pages: tuple[str, ...] = ()
    """The sizes that they may have, the first unless another is asked for."""


X86 = Arch("x86", "amd64", "x86_64-linux-gnu", "bzImage", "arch/x86/boot/bzImage")
ARM64 = Arch("arm64", "arm64", "aarch64-linux-gnu", "Image", "arch/arm64/boot/Image", ("4k", "16k", "64k"))
UM = Arch("um", "amd64", "x86_64-linux-gnu", "linux", "linux")
"""User-mode Linux: a program of the build root, which nobody asks for by ARCH."""
ARCHES = {arch.name: arch for arch in (X86, ARM64)}


def chosen(name: str | None, pages: str | None) -> tuple[Arch, str]:
    """The architecture of this name and the size of its pages, as a user may leave them out."""
    arch = ARCHES.get(X86.name if name is None else name)
    if arch is None:
        raise Failure(f"ARCH={name} is unknown; give {' or '.join(ARCHES)}", 2)
    size = (*arch.pages, "")[0] if pages is None else pages
    if pages is not None and pages not in arch.pages:
        allowed = f"PAGES={', '.join(arch.pages[:-1])} and {arch.pages[-1]}" if arch.pages else "one size of pages"
        raise Failure(f"PAGES={pages} is not possible; {arch.name} has {allowed}", 2)
    return arch, size
