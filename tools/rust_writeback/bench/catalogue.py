# SPDX-License-Identifier: GPL-2.0
"""Every scenario: its job file, the drive it runs on, and the modes and file systems that it is run in."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import Failure
from ..vm.options import amount
from . import jobs
from .drives import CLOUD, Drive, FAST, STREAM

BARE = "device"
"""No file system: the block device itself."""

FILE_SYSTEMS = ("xfs", "ext4")

NFS = "nfs"
"""An NFS server with its files on xfs, and a client on the loopback interface that reads and writes directly: a mode
is the server's there."""

PLACES = (*FILE_SYSTEMS, BARE, NFS)
COMPARED = ("buffered", "dontcache")
SCALE = "direct"
"""Direct writes meet neither core. They give the scale, in the first table and the first picture, too."""

ALL_MODES = (*COMPARED, SCALE)

ENOUGH, LITTLE = "1G", "192M"
"""Memory of a guest: enough for programs beside a load, or less than its files."""

STEADY = 10
"""So many times the background threshold, from which on the flusher writes, is written by a load that is no burst."""


@dataclass(frozen=True)
class Entry:
    """A scenario as it is run. Loads that use the files of the one before them follow it."""

    name: str
    modes: tuple[str, ...] = ALL_MODES
    places: tuple[str, ...] = FILE_SYSTEMS
    drive: Drive = CLOUD
    mem: str = ENOUGH
    touched: float = 0.0
    """the share of the memory that a task beside the load keeps using"""
    sysctls: dict[str, int] = field(default_factory=dict, hash=False)
    """settings of /proc/sys for as long as the load runs"""


CATALOGUE = (
    Entry("sequential", drive=STREAM),
    Entry("random", drive=FAST),
    Entry("random-burst"),
    Entry("small-4k"),
    Entry("small-64k"),
    # Records that are no whole blocks cannot be written directly.
    Entry("append", COMPARED),
    Entry("append-paced-burst", COMPARED),
    Entry("paced"),
    Entry("tree"),
    Entry("temp-burst"),
    Entry("compaction"),
    Entry("memory", drive=STREAM, touched=0.75),
    Entry("capped", sysctls={"vm/dirty_background_bytes": 32 << 20, "vm/dirty_bytes": 64 << 20}),
    Entry("writers-4", drive=STREAM),
    Entry("writers-32", drive=STREAM),
    Entry("competing", drive=STREAM),
    Entry("sequential-read", drive=STREAM, mem=LITTLE),
    Entry("random-read", drive=STREAM, mem=LITTLE),
    Entry("noisy", drive=STREAM, mem=LITTLE),
    Entry("mixed", ("dontcache",), drive=STREAM, mem=LITTLE),
    Entry("device-read", places=(BARE,), drive=STREAM, mem=LITTLE),
    Entry("depth-1", places=(*FILE_SYSTEMS, BARE), drive=FAST),
    # A server's files are larger than its memory.
    Entry("sequential", places=(NFS,), mem=LITTLE),
    Entry("sequential-read", places=(NFS,), mem=LITTLE),
    Entry("random-read", places=(NFS,), mem=LITTLE),
    Entry("random-64k", places=(NFS,), mem=LITTLE),
    Entry("writers-4", places=(NFS,), mem=LITTLE),
    Entry("interleaved", places=(NFS,), mem=LITTLE),
    Entry("interleaved-shifted", places=(NFS,), mem=LITTLE),
    Entry("readers-and-writer", places=(NFS,), mem=LITTLE),
)

SHORT = tuple(f"{name}/xfs" for name in ("small-4k", "append", "random-burst"))
"""What make run runs."""


@dataclass(frozen=True)
class Load:
    """A scenario in one mode in one place."""

    scenario: jobs.Scenario
    mode: str
    place: str
    drive: Drive
    mem: str
    entry: Entry
    keep: bool = False
    """whether its files stay for the load after it"""

    def plan(self) -> dict[str, Any]:
        """What the guest must know."""
        return {
            "name": self.name,
            "mode": self.mode,
            "text": self.scenario.text,
            "environment": jobs.MODES[self.own_mode],
            "command": [*self.scenario.program, self.mode] if self.scenario.program else [],
            "jobs": sum(section.jobs for section in self.scenario.sections),
            "needs": self.scenario.needs,
            "keep": self.keep,
            "touched": self.entry.touched,
            "sysctls": self.entry.sysctls,
        }

    @property
    def moved(self) -> int:
        """The bytes that the jobs that know their end read or write."""
        return sum(section.bytes for section in self.scenario.sections)

    def seconds(self, rate: float) -> float:
        """How long it may take, at so many bytes a second if its drive is no slower."""
        limit = amount(self.drive.bps) if self.drive.bps else rate
        return max(self.moved / min(rate, limit), self.scenario.paced_seconds)

    @property
    def own_mode(self) -> str:
        """What the load itself does. A server's mode is not its client's."""
        return SCALE if self.place == NFS else self.mode

    @property
    def name(self) -> str:
        """As --only selects it."""
        return f"{self.scenario.name}/{self.place}/{self.mode}"


def select(place: str, factor: int = 1) -> list[Load]:
    """The loads of one place, mode by mode, with scenarios in the catalogue's order."""
    entries = [(entry, jobs.read(jobs.find(entry.name), factor)) for entry in CATALOGUE if place in entry.places]
    return [
        Load(scenario, mode, place, entry.drive, entry.mem, entry)
        for mode in ALL_MODES
        for entry, scenario in entries
        if mode in entry.modes
    ]


def matrix(only: Sequence[str] = ()) -> list[Load]:
    """All loads whose name, scenario/place/mode, one of the patterns matches; no pattern means all."""
    return matching([load for place in PLACES for load in select(place)], only)


def matching(loads: Sequence[Load], only: Sequence[str]) -> list[Load]:
    """Those that one of the patterns matches."""
    # A pattern may stop after the scenario, or after the place.
    patterns = [whole for pattern in only or ["*"] for whole in (pattern, f"{pattern}/*")]
    chosen = [load for load in loads if any(fnmatch.fnmatchcase(load.name, pattern) for pattern in patterns)]
    if not chosen:
        raise Failure(f"--only {' '.join(only)} matches nothing; names are like {loads[0].name} or */ext4/*", 2)
    return chosen


def in_turn(loads: Sequence[Load], pair: int) -> list[Load]:
    """The order in which a pair runs them: which mode comes first alternates.

    Within a mode the catalogue's order stays, for a load may use the files of the one before it.
    """
    modes = list(dict.fromkeys(load.mode for load in loads))
    if pair % 2 == 0:
        modes.reverse()
    return [load for mode in modes for load in loads if load.mode == mode]


def keeping(loads: Sequence[Load]) -> list[Load]:
    """The loads of one boot in their order; files stay where the next load needs them."""
    found = []
    for load, after in zip(loads, [*(load.scenario for load in loads[1:]), None], strict=True):
        left = {name for section in load.scenario.sections for name in section.names}
        used = {name for section in after.sections for name in section.names} if after else set()
        found.append(replace(load, keep=bool(after and left & after.needs.keys() and left <= used)))
    return found
