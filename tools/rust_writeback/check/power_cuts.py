# SPDX-License-Identifier: GPL-2.0
"""Cut the power of a guest that writes, and check that all that fsync promised is there.

The load and the check are tools/guest/power_cuts.py. Each boot checks what the boot before left behind. Then it
writes until QEMU is killed, at a random moment. The guest's acknowledgements go to a folder on the host, which
outlives QEMU. If a message is lost with the guest, the check is weaker by a sync. A message that has arrived was sent
after the fsync returned, which the drive had answered. So no cut can be blamed for what was never promised. A cut
counts only if the guest had acknowledged something, its counter of DONTCACHE pages had moved, and its drive held
data that was not flushed.
"""

import random
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .. import paths
from ..errors import Failure
from ..vm import emulated
from ..vm.torn_drive import Drive
from .guest_tests import Counts

SCRIPT = paths.TOOLS / "guest" / "power_cuts.py"
LIB = paths.TOOLS / "guest" / "lib"
KINDS = ("xfs", "ext4", "nfs")
SIZE = 320 << 20
"""There is no xfs below 300 MiB."""
SHORTEST, LONGEST = 0.5, 5.0
"""Seconds of load before a cut."""
PATIENCE = 180.0
"""Seconds after which a load that cannot be cut is a failure."""

# QEMU's NVMe takes FUA and forgets it; virtio-blk does not offer it, and the kernel
# flushes in its place. The root is the first of its kind.
NODE = "/dev/vdb"


class PowerCut(Exception):
    """Ends a boot where it is."""


@dataclass
class Watch:
    """What the guest tells, and when its time is over."""

    drive: Drive
    acknowledged: Path
    moment: float
    """Seconds of load until the cut."""

    checked: int = 0
    counted: int = 0
    text: bytearray = field(default_factory=bytearray)
    _line: bytes = b""
    _began: float | None = None

    def take(self, data: bytes) -> None:
        """Hear the guest; PowerCut when the moment has come."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            match line.split():
                case [b"checked", number]:
                    self.checked = int(number)
                case [b"load", counted, taint]:
                    self._under_load(int(counted), int(taint))
                case _:
                    self.text += line + b"\n"

    def _under_load(self, counted: int, taint: int) -> None:
        if taint & emulated.TAINT_WARN:
            raise Failure("the kernel warned under the load; see the newest log in build/log")
        self.counted = max(self.counted, counted)
        now = time.monotonic()
        self._began = self._began or now
        if now - self._began < self.moment:
            return
        if self.counted and self.syncs() and self.drive.try_off():
            raise PowerCut
        if now - self._began > PATIENCE:
            raise Failure(f"no load after {PATIENCE:.0f} s: {self.syncs()} syncs, counter {self.counted}, nothing in flight")

    def again(self, failure: emulated.VmFailure) -> None:
        """Forget a QEMU that died, unless the writers may have begun.

        Under load its death is a failure: it is not a cut, and what it leaves behind is not what the next try checks.
        """
        if self.checked or self.acknowledged.exists():
            raise failure
        self.text.clear()
        self._line = b""

    def syncs(self) -> int:
        """How often the writers of this boot have acknowledged."""
        return sum(1 for _ in self.acknowledged.glob("*/*"))

    def last_line(self) -> str:
        """What was told last, apart from figures."""
        return (self.text.decode(errors="replace").strip() or "nothing was told").splitlines()[-1]


def _chain(kind: str, cuts: int, core: str, seed: int, kernel: Path) -> Counts:
    """A file system that loses its power again and again."""
    counts = Counts()
    chance = random.Random(f"{kind} {seed}")
    paths.BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.BUILD) as name:
        drive = Drive(SIZE, Path(name))
        share = Path(name) / "share"
        shutil.copytree(LIB, share / LIB.name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(SCRIPT, share)
        where = f"{kind} on {core}, seed {seed}"
        told, number = "", 0
        try:
            for number in range(cuts + 1):
                watch = Watch(drive, share / "acknowledged" / f"{seed}.{number}", chance.uniform(SHORTEST, LONGEST))
                ended = _boot(watch, f"{kind} {seed} {number} {cuts}", core, share, kernel)
                if number and not watch.checked:
                    raise Failure(f"nothing was checked: {watch.last_line()}")
                if number:
                    print(f"power cuts: {where}, cut {number}: {told}, {watch.checked >> 10} KiB found", flush=True)
                    counts.passed += 1
                if ended is not None and (ended or number < cuts):
                    raise Failure(f"ended with {ended}: {watch.last_line()}")
                syncs = watch.syncs()
                held, lost = drive.forget(chance)
                told = f"{syncs} syncs in {watch.moment:.1f} s, {lost} of {held} unflushed sectors lost"
        except Failure as failure:
            counts.fail(f"power cuts: {where}, boot {number}: {failure}")
    return counts


def _boot(watch: Watch, words: str, core: str, share: Path, kernel: Path) -> int | None:
    """One boot, tried again if QEMU dies before the load; None when the power was cut, else the status of the script."""
    with watch.drive.plugged_in() as file:
        backend = f"if=none,id=cut,format=raw,cache=writeback,file={file}"
        devices = ("-drive", backend, "-device", "virtio-blk-pci,drive=cut")
        options = emulated.VmOptions(core=core, mem="768M", nvme=None, share=share, devices=devices, kernel=kernel)
        command = f"NVME={NODE} exec python3 -B /share/{SCRIPT.name} {words}"
        try:
            result = emulated.run(options, [command], stdout=watch.take, again=watch.again)
        except PowerCut:
            return None
    watch.text += result.stderr
    if result.complaint:
        raise Failure(f"the kernel complained; see {result.console}")
    return result.status


def run(cuts: int = 6, core: str = "rust", kernel: Path = paths.BZIMAGE) -> Counts:
    """So many cuts or a few more, as many of each kind; each is a case."""
    seed = random.SystemRandom().randrange(1 << 32)
    counts = Counts()
    for kind in KINDS:
        counts.add(_chain(kind, -(-cuts // len(KINDS)), core, seed, kernel))
    return counts
