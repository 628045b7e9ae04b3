# SPDX-License-Identifier: GPL-2.0
"""Every scenario: its job file, and the modes and file systems that it is run in."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Failure
from . import jobs

BARE = "device"
"""No file system: the block device itself."""

FILE_SYSTEMS = ("xfs", "ext4")
PLACES = (*FILE_SYSTEMS, BARE)
COMPARED = ("buffered", "dontcache")
SCALE = "direct"
"""Direct writes meet neither core. They give the scale."""

ALL_MODES = (*COMPARED, SCALE)


@dataclass(frozen=True)
class Entry:
    """A scenario as it is run. Loads that use the files of the one before them follow it."""

    name: str
    modes: tuple[str, ...] = ALL_MODES
    places: tuple[str, ...] = FILE_SYSTEMS
    memory_share: int = 0
    """a memory cgroup holds the load, with this fraction of what is written"""
    counts: bool = False
    """bios that are completed in a task are counted inside the kernel, which slows them a little"""


CATALOGUE = (
    Entry("sequential"),
    Entry("random"),
    Entry("sequential-read"),
    Entry("random-read"),
    Entry("writers-4"),
    Entry("writers-32"),
    Entry("noisy"),
    Entry("mixed", ("dontcache",)),
    Entry("competing", COMPARED),
    Entry("device-read", COMPARED, (BARE,)),
    Entry("device-write-memcg", COMPARED, (BARE,), memory_share=4),
    Entry("depth-1", COMPARED, PLACES),
    Entry("depth-1-counts", ("dontcache",), ("xfs", BARE), counts=True),
)

NAMES = tuple(entry.name for entry in CATALOGUE)

SHORT = ("sequential", "random", "writers-4", "writers-32")
"""What make run runs."""


@dataclass(frozen=True)
class Load:
    """A scenario in one mode in one place: what one bar of a plot stands for."""

    scenario: jobs.Scenario
    mode: str
    place: str
    memory_max: int = 0
    counts: bool = False

    @property
    def moved(self) -> int:
        """The bytes that the jobs that know their end read or write."""
        return sum(section.bytes for section in self.scenario.sections)

    @property
    def name(self) -> str:
        """As --only selects it."""
        return f"{self.scenario.name}/{self.place}/{self.mode}"


def select(
    place: str, modes: Sequence[str], names: Sequence[str], folder: Path = jobs.FOLDER, factor: int = 1
) -> list[Load]:
    """The loads of one place, mode by mode, with scenarios in the catalogue's order."""
    entries = [entry for entry in CATALOGUE if entry.name in names and place in entry.places]
    scenarios = {entry.name: jobs.read(folder / f"{entry.name}.fio", factor) for entry in entries}
    loads = []
    for mode in modes:
        for entry in entries:
            if mode in entry.modes:
                scenario = scenarios[entry.name]
                limit = scenario.written // entry.memory_share if entry.memory_share else 0
                loads.append(Load(scenario, mode, place, limit, entry.counts))
    return loads


def matrix(only: Sequence[str] = (), folder: Path = jobs.FOLDER) -> list[Load]:
    """All loads whose name, scenario/place/mode, one of the patterns matches; no pattern means all."""
    return matching([load for place in PLACES for load in select(place, ALL_MODES, NAMES, folder)], only)


def matching(loads: Sequence[Load], only: Sequence[str]) -> list[Load]:
    """Those that one of the patterns matches."""
    chosen = [load for load in loads if not only or any(_matches(load.name, pattern) for pattern in only)]
    if not chosen:
        raise Failure(f"--only {' '.join(only)} matches nothing; names are like {loads[0].name} or */ext4/*", 2)
    return chosen


def _matches(name: str, pattern: str) -> bool:
    """A pattern may stop after the scenario, or after the place."""
    parts = name.split("/")
    return any(fnmatch.fnmatchcase("/".join(parts[:count]), pattern) for count in (1, 2, 3))
