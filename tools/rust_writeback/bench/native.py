# SPDX-License-Identifier: GPL-2.0
"""Loads in user-mode Linux: the same kernel tree at the speed of the real CPU, on a drive in its memory."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..build import kernel
from ..build.variants import NATIVE
from ..errors import Failure
from ..vm import images, native
from ..vm.options import VmOptions
from . import boots, drives
from .catalogue import Load, NFS
from .drives import Drive


@dataclass(frozen=True)
class Native(boots.Machine):
    """User-mode Linux with a drive in its memory."""

    caveat: ClassVar[str] = "User-mode Linux on the host's CPU: system calls cost more there than on hardware, memory the same."
    report: ClassVar[str] = "native"
    boot_seconds: ClassVar[float] = 3.0
    rate: ClassVar[float] = 200e6
    cpus: int = 1
    interval: float = 0.02

    def ran(self, setup: Mapping[str, Any]) -> str:
        """What ran the kernel."""
        return f"user-mode Linux on {setup['host_cpu']}"

    def select(self, loads: Sequence[Load], drive: Drive | None) -> list[Load]:
        """All on the fast drive."""
        if drive not in (None, drives.FAST):
            raise Failure("the native machine has only the drive fast; omit --drive", 2)
        chosen = [replace(load, drive=drives.FAST) for load in loads if load.place != NFS]
        if not chosen:
            raise Failure(f"the native machine cannot run */{NFS}: it has no network; choose other loads", 2)
        return chosen

    def command(self, plan: Mapping[str, Any]) -> list[str]:
        """What runs in it; its root is the build root, in which the project is."""
        path = f"{images.LOAD.parent}:$PATH"
        script = f'cd {boots.DRIVER} && PATH={path} exec python3 -B -m bench "$1"'
        return ["sh", "-c", script, "bench", json.dumps(plan)]

    def boot(self, boot: boots.Boot, stream: boots.Stream) -> dict[str, Any]:
        """Boot, and run all steps; what is known of it afterwards."""
        options = VmOptions(core=boot.variant, mem=self.mem(boot), smp=self.cpus)
        result = native.run(options, self.command(self.plan(boot)), stdout=stream)
        return boots.judged(boot, stream, replace(result, accel="native (user-mode Linux)"))

    def ensure(self) -> None:
        """Build what is booted."""
        kernel.ensure(NATIVE)
        images.ensure_program(images.LOAD_SOURCE, images.LOAD)

    image = NATIVE.image
