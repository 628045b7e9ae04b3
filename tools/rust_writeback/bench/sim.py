# SPDX-License-Identifier: GPL-2.0
"""The simulation: loads in a guest whose clock counts instructions.

Nothing in it comes from the host while a load runs: the CPUs take turns in one thread, the root is an
initramfs, the drive is the guest's own memory with the guest's own timers, and the figures leave the guest at
the end. So a second boot gives the same digits, however busy the machine is.

A repeatable figure can still depend on chance: with one more instruction, two threads meet elsewhere. Further
pairs begin their loads at other moments. They show how much of a ratio is chance, and repeat to the digit as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..arch import X86
from ..errors import Failure
from ..progress import Bar
from ..vm import emulated, images
from ..vm.options import amount
from . import boots, report, results
from .catalogue import Load
from .contenders import Variant
from .drives import Drive, FAST

QUICK = (
    "depth-1/device",
    "sequential/xfs/buffered",
    "sequential/xfs/dontcache",
    "writers-32/xfs/buffered",
    "writers-32/xfs/dontcache",
)
"""What QUICK=1 runs."""

REPEATED = ("depth-1/device/dontcache",)
"""What --repeat runs twice, where nothing else is asked for."""

LEFT_OUT = ("noisy", "interleaved", "interleaved-shifted")
"""The readers of the first rest between two reads, and its writer is done before they have read often enough. The
file of the others has 2.5 times the memory: shifted and written directly it filled the drive."""

COMMAND = """
PYTHONHASHSEED=0 python3 -B -m bench "$1" >/tmp/out 2>/tmp/err
status=$?
cat /tmp/out
cat /tmp/err >&2
exit $status
"""
"""The host takes what comes out when it likes: let nothing come while there is something to measure."""

APPEND = "norandmaps transparent_hugepage=never"
"""Programs at the same addresses in every boot. A small guest has no huge pages, and keeps no reserve for them."""

DELAY = 0.000317
"""Seconds by which a load of one pair begins later than that of the pair before: no part of a timer tick."""

BOOT_SECONDS, BYTES_PER_SECOND = 18.0, 40e6
"""What a boot takes a slow host, and how fast it simulates a load."""


class Words(report.Words):
    """What a report says of figures that were counted."""

    legend = (
        report.Words.legend
        + " A second is 10^9 instructions of all CPUs together: counted, not timed, so that another boot gives the same"
        " digits. Of several pairs, which begin at different moments: means, and ratios with their 95 % intervals."
        " work: thousands of instructions for each MiB until all is durable, of the load from its start to its end and"
        " of the kernel's workers; of CPUs that are busy at the same time each counts the others' turns as its own,"
        " which --cpus 1 avoids."
    )
    captions = {
        **report.CAPTIONS,
        "ratios": ("Ratios", "Left of the line the other core has the smaller figure, right of it the larger."),
    }
    emulated = "Counted, not timed: a nanosecond is an instruction."


@dataclass(frozen=True)
class Simulated(boots.Machine):
    """A machine whose nanosecond is an instruction, with a drive of fixed latency."""

    counted: ClassVar[bool] = True
    words: ClassVar[report.Words] = Words()
    report: ClassVar[str] = "sim"
    pairs: ClassVar[int] = 1
    cpus: int = 4
    interval: float = 0.01

    def select(self, loads: Sequence[Load], drive: Drive | None) -> list[Load]:
        """Those that can be simulated, all on the drive that is."""
        if drive not in (None, FAST):
            raise Failure(f"the simulation has only the drive {FAST}; omit --drive", 2)
        left = [load for load in loads if load.scenario.name not in LEFT_OUT]
        chosen = [replace(load, drive=FAST) for load in left]
        if not chosen:
            raise Failure(
                f"the simulation cannot run {', '.join(LEFT_OUT)}: the writer of the first ends too soon for its"
                " readers, and the file of the others fills the drive; choose other loads",
                2,
            )
        return chosen

    def options(self, boot: boots.Boot) -> emulated.VmOptions:
        """The root is in the guest's memory, too."""
        images.ensure(whole=True)
        root = images.whole_initramfs(X86).stat().st_size
        total = amount(boot.mem) + self.held(boot.drive) + root + root // boots.KEEPING
        return emulated.VmOptions(
            core=boot.variant.core,
            smp=self.cpus,
            mem=f"{total >> 20}M",
            icount=True,
            nvme=None,
            append=APPEND,
            programs=(boots.DRIVER / "bench", boots.DRIVER / "lib"),
        )

    def plan(self, boot: boots.Boot) -> dict[str, Any]:
        """Each pair begins at another moment, or it would repeat the first."""
        return {**super().plan(boot), "delay": (boot.pair - 1) * DELAY}

    def command(self, plan: Mapping[str, Any]) -> list[str]:
        """What runs in the guest."""
        return ["sh", "-c", f"cd /share || exit\n{COMMAND}", "bench", results.to_text(plan)]

    def share_out(self, loads: Sequence[Load]) -> list[list[Load]]:
        """A boot for each load: its figures do not depend on what else is run."""
        return [[load] for load in loads]

    def seconds(self, loads: Sequence[Load]) -> float:
        """How long the boots of one variant may take."""
        return sum(BOOT_SECONDS + load.moved / BYTES_PER_SECOND for load in loads)


def differences(one: bytes, other: bytes) -> list[str]:
    """What is not the same in two outputs of the guest's driver: everything should be."""
    lines = [results.read_lines(output) for output in (one, other)]
    if len(lines[0]) != len(lines[1]):
        return [f"{len(lines[0])} lines and {len(lines[1])}"]
    found = []
    for number, (a, b) in enumerate(zip(*lines, strict=True), 1):
        where = f"{a.get('scenario', a['kind'])} (line {number})"
        found += [
            f"{where}, {name}: {_short(a.get(name))} and {_short(b.get(name))}"
            for name in {**a, **b}
            if a.get(name) != b.get(name)
        ]
    return found or (["the bytes of the output"] if one != other else [])


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def repeat(machine: boots.Machine, loads: Sequence[Load], compared: Sequence[Variant]) -> None:
    """Run every load twice on every variant; raise unless all that the guest said was the same."""
    wrong = []
    with Bar("the same twice", 2 * 3 * len(loads) * len(compared)) as bar:
        for load in loads:
            for variant in compared:
                twice = [boots.Boot(1, variant, results.plan([load])) for _ in range(2)]
                for boot in twice:
                    boots.run(machine, boot, bar)
                    results.accept(results.read_lines(boot.output), boot.steps, boot.pair, variant)
                found = differences(twice[0].output, twice[1].output)
                verdict = "not the same" if found else "the same"
                print(f"{load.name}, {variant.name}: two boots, {len(twice[0].output)} bytes of figures, {verdict}")
                for line in found:
                    print(f"  {line}")
                wrong += [f"{load.name}, {variant.name}"] if found else []
    if wrong:
        raise Failure(f"two boots gave different figures: {'; '.join(wrong)}; the lines above say where")
