# SPDX-License-Identifier: GPL-2.0
"""make micro: instructions per operation and of an overwrite, C beside Rust.

Under icount a guest nanosecond is one instruction, so nothing here is noise: a
second run gives the same digits, and a ratio needs no interval.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import arch, paths
from ..arch import ARM64, X86
from ..build import kernel
from ..build.variants import MEASURED, Variant, of_arch
from ..errors import Failure, Parser
from ..steps import write_whole
from ..tables import show
from ..vm import emulated, images, machine
from . import boots, overwrite
from .contenders import CORES

DRIVER = paths.TOOLS / "guest" / "micro.py"
LIMIT = 1.00
"""Rust may cost what C costs, and no more."""
DEVICE_KIB = 256 << 10

OPERATIONS = {
    "kick_set": "write, a round comes at once",
    "kick_wait": "write, a round comes in a while",
    "kick_clear": "write, no round comes yet",
    "consume": "flusher consumes the kick",
    "account_dirtied": "account a folio dirtied",
    "account_cleaned": "account a folio cleaned",
    "buffered_dirtied": "dirty a buffered folio",
    "buffered_cleaned": "clean a buffered folio",
    "bio_first_in_a_while": "queue a bio, the first in a while",
    "bio_another": "queue a bio, another",
    "bio_alone": "end a bio, alone",
    "bio_of_32": "end a bio, of 32",
}

SWITCHES = {"stream_switches": "one at a time"}

DROPS = {
    "drop_4k_alone": "4 KiB, alone in its bio",
    "drop_4k_of_8": "4 KiB, of a bio of 8",
    "drop_4k_of_64": "4 KiB, of a bio of 64",
    "drop_64k_alone": "64 KiB, alone",
    "drop_64k_of_16": "64 KiB, of 16",
    "drop_2m_alone": "2 MiB, alone",
    "drop_2m_of_4": "2 MiB, of 4",
    "drop_4k_interrupt": "4 KiB, alone, completed in an interrupt",
    "drop_4k_interrupt_of_8": "4 KiB, of 8, completed in an interrupt",
}

FIGURES = OPERATIONS | SWITCHES | DROPS

ROUNDS = ("10", "100000")
"""Other inodes that are dirty while the flusher has a round for one page."""
ROUND_LIMIT = 1.10
"""How much more it may cost beside many than beside few: it does not look at them."""

FILES = ("2000", "20000")
"""Files with a page each that are all dirty when their round begins."""
FILES_LIMIT = 11.0
"""How much more the many may cost the flusher than the few."""

LOOK_LIMIT = 100_000
"""Instructions for which the lock of the flusher's lists may be held: less than a look that finds nothing costs."""

X86_DEARER = {
    "kick_set": 1.06,
    "kick_wait": 1.24,
    "consume": 1.10,
    "bio_first_in_a_while": 1.06,
    "bio_alone": 1.24,
    "bio_of_32": 1.78,
    "drop_4k_alone": 1.47,
}
"""Operations in which Rust does more than C, and by how much it may be dearer for that.

- A kick passes through the frame of the C function, which the kernel with both cores keeps: seven instructions. A writer that
  finds that a round comes in a while compares how many pages there are, where C has requested one immediately.
- The flusher looks at what it has left and at the list of inodes.
- The first bio queues an unbound worker. The worker turns the list of bios around, in five instructions for each, because
  the list has no lock; to queue another bio costs four instructions less than with C.
- A page of 4 KiB that is alone has a timer and a run of the worker to itself. This happens at most every 50 ms on a CPU: pages
  that come closer together share both, and cost less than with C (drop_4k_of_8)."""

ARM64_DEARER = X86_DEARER | {
    "kick_set": 1.05,
    "kick_wait": 1.24,
    "consume": 1.12,
    "account_dirtied": 1.05,
    "bio_first_in_a_while": 1.09,
    "bio_another": 1.09,
    "bio_alone": 1.18,
}
"""Measured 2026-11-26, rounded up. The same reasons, and by the kernel's disassembly these. It keeps frame pointers, and
our functions are called where C's code stands in its caller: a frame is six instructions in dontcache_dirtied(),
three in bio_task_add(), and seven in dontcache_kick(), which saves two registers for a writer who
compares. dontcache_flush() handed its flusher over on the stack then, in twelve. For a bio that asks for a task bio_endio()
asks, in five, whether this is an interrupt, where it may end. The worker forms the address of its CPU's batch anew at each look."""

DEARER = {X86: X86_DEARER, ARM64: ARM64_DEARER}


@dataclass(frozen=True)
class Measured:
    """What one core said: instructions by operation, and by row of the overwrites."""

    operations: dict[str, float]
    overwrites: dict[str, float]
    rounds: dict[str, float]
    look: float = 0.0
    """of Rust only, as the files"""
    files: dict[str, float] = field(default_factory=dict)


def parse(output: bytes, core: str) -> Measured:
    """The instructions of everything, from the guest's driver; all must be there."""
    try:
        document = json.loads(output)
        active, lines = document["core"], [line.split() for line in document["lines"]]
        rounds = {dirty: float(document["rounds"][dirty]) for dirty in ROUNDS}
        look = float(document["look"]) if core == "rust" else 0.0
        files = {count: float(document["files"][count]) for count in FILES} if core == "rust" else {}
        overwrites = document["overwrite"]
    except (ValueError, KeyError, TypeError):
        raise Failure(f"the micro-benchmark of the {core} core printed nothing; see build/log") from None
    if active != core:
        raise Failure(f"the active core was {active}, not {core}; nothing is reported")
    figures = {words[0]: float(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}
    if missing := [name for name in FIGURES if figures.get(name, 0) <= 0]:
        raise Failure(f"the micro-benchmark of the {core} core lacks {', '.join(missing)}; nothing is reported")
    if min([*rounds.values(), *files.values()]) <= 0 or (core == "rust" and look == 0):
        raise Failure(f"the flusher of the {core} core had no round; nothing is reported")
    return Measured(figures, overwrite.parse(overwrites, core), rounds, look, files)


def document(measured: Mapping[str, Measured]) -> dict[str, Any]:
    """The figures of both cores, as they are written, shown and judged."""
    c, rust = measured["c"], measured["rust"]
    return {
        "figures": {core: one.operations for core, one in measured.items()},
        "ratios": {name: rust.operations[name] / c.operations[name] for name in FIGURES},
        "overwrite": overwrite.document({core: one.overwrites for core, one in measured.items()}),
        "rounds": {core: one.rounds for core, one in measured.items()},
        "look": rust.look,
        "files": rust.files,
    }


def measure(core: str, variant: Variant = MEASURED) -> tuple[Measured, emulated.VmResult]:
    """Boot one core, and run the benchmarks."""
    program = paths.BUILD / "bin" / variant.arch.name / "overwrite"
    images.ensure_program(DRIVER.with_name("overwrite.c"), program, "-luring", arch=variant.arch)
    options = emulated.VmOptions(
        core=core,
        smp=1,
        icount=True,
        nvme=None,
        append=f"brd.rd_size={DEVICE_KIB}",
        programs=(program,),
        arch=variant.arch,
        kernel=variant.image,
    )
    result = emulated.run(options, ["python3", "-c", DRIVER.read_text()], again=emulated.from_scratch)
    if result.status:
        said = " ".join(result.stderr.decode(errors="replace").split())[-300:]
        raise Failure(f"the micro-benchmark of the {core} core failed: {said or f'status {result.status}'}")
    return parse(result.stdout, core), result


def judge(found: Mapping[str, Any], dearer: dict[str, float]) -> None:
    """Raise if Rust costs more than C, holds a lock for long, or cares where a write lands or who else is dirty."""
    limits, overwrites = overwrite.LIMITS | dearer, found["overwrite"]
    ratios = found["ratios"] | overwrites["ratios"]
    judged = [(f"Rust/C of {name}", ratio, limits.get(name, LIMIT)) for name, ratio in ratios.items()]
    for name in overwrite.SERIES:
        ratio, place = overwrite.worst(overwrites["figures"]["rust"], name)
        judged.append((f"{name} {place}/start of the folio", ratio, overwrite.FLAT[name[:4]]))
    few, many = (found["rounds"]["rust"][dirty] for dirty in ROUNDS)
    judged.append((f"a round for one page beside {ROUNDS[1]}/{ROUNDS[0]} dirty inodes", many / few, ROUND_LIMIT))
    some, more = (found["files"][count] for count in FILES)
    judged.append((f"a round for {FILES[1]}/{FILES[0]} files", more / some, FILES_LIMIT))
    judged.append(("instructions of a look at the flusher's lists", found["look"], LOOK_LIMIT))
    if above := [f"{what}: {value:.3f} (at most {limit:.3f})" for what, value, limit in judged if value > limit]:
        raise Failure(f"Rust costs more instructions than the limits allow: {', '.join(above)}")


def main(arguments: list[str]) -> int:
    """Measure both cores, print, write build/report/micro.json, or that of another architecture, judge."""
    from . import kept  # which needs what is counted here

    parser = Parser(prog="micro", description=__doc__)
    parser.add_argument("--arch", help=f"on an emulated machine of this architecture: {', '.join(arch.ARCHES)}")
    options = parser.parse_args(arguments)
    variant = of_arch(*arch.chosen(options.arch, None))
    machine.polite()
    kernel.ensure(variant)
    measured: dict[str, Measured] = {}
    for core in CORES:
        print(f"{core} core under icount ...", file=sys.stderr, flush=True)
        measured[core], result = measure(core, variant)
    command = f"make micro ARCH={options.arch}" if options.arch else "make micro"
    found = {"setup": boots.setup(command, result), **document(measured)}
    write_whole(paths.BUILD / "report" / f"micro{variant.suffix}.json", json.dumps(found, indent=1) + "\n")
    show(kept.micro_page(found))
    judge(found, DEARER[variant.arch])
    return 0
