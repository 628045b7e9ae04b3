# SPDX-License-Identifier: GPL-2.0
"""Turns the output of a boot into measurements, if it proves what it measured.

A boot outputs JSON lines (see tools/guest/bench/__main__.py). They become measurements only if they prove the
core, that DONTCACHE was in effect where it was requested and nowhere else, and that the load was complete.
"""

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import Failure
from . import catalogue, jobs
from .catalogue import Load
from .contenders import KERNEL

PAGE = 4096
PERCENTILES = (50.0, 99.0, 99.9)

BEYOND = 10
"""A percentile beyond which fewer requests than this lie is not told: the next run would say something else."""

DIRTY, WRITEBACK, COUNTED, CACHED, BLOCKED, READ, WRITTEN = range(1, 8)
"""The columns of a sample: four of pages, threads of a server, two of bytes; column 0 is seconds."""

LEFT_BY_UNCACHED = 1 / 16
"""Reads with DONTCACHE move no counter. What proves them is that less than this of what they read stays cached."""

SYNCED_BY_CLIENT = 256 << 10
"""Bytes up to which a client of NFS that writes directly has the server sync each write; see guest/bench/nfs.py."""

MUCH = 1 / 4
"""On real hardware DONTCACHE leaves less than this in the cache, and others leave more.

What was read ahead may stay where memory is plenty.
"""

NOT_ENDED = "the guest did not finish its plan"

Line = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """One section of one step of one boot. Pages are of 4096 bytes."""

    pair: int
    variant: str
    load: str
    """as --only selects it"""
    scenario: str
    """the scenario's name, with the section's where there are several"""
    mode: str
    place: str
    drive: str
    first: bool
    """Is it the step's first section? What belongs to the step is told of that one."""
    outcome: jobs.Outcome
    peak_dirty_pages: int
    cached_pages: int
    counter_after: int | None
    """what this step left on the counter, whatever earlier ones had left; None where there is no counter"""
    used: dict[str, float]
    """what the machine spent while fio ran"""
    device: dict[str, int]
    """what the device did until all had reached it: bytes, and the number of writes; empty where nobody knows"""
    written: int
    """the bytes that all sections of the step wrote to stay"""
    moved: int
    """the bytes that they wrote and read"""
    samples: list[list[float]]
    half_ms: float | None
    """from the section's first request until half of what the device moved had been moved; None without a device that
    counts, and of a section that is paced or ends with the others"""
    paced: bool
    server_threads: int = 0
    """of a server that has done the work, as far as they can be seen"""

    @property
    def start_mb_per_s(self) -> float | None:
        """10^6 bytes a second of the half that reached the drive first."""
        return self.half_ms and self.outcome.bytes / 2e3 / self.half_ms

    @property
    def second_half_mb_per_s(self) -> float | None:
        """10^6 bytes a second of the other half, until all was durable."""
        return self.half_ms and self.outcome.bytes / 2e3 / (self.outcome.durable_ms - self.half_ms)

    @property
    def blocked_seconds(self) -> float | None:
        """For how long the server's threads were blocked, all together, by what was sampled."""
        if not self.server_threads:
            return None
        pairs = itertools.pairwise(self.samples)
        return math.fsum((after[0] - before[0]) * after[BLOCKED] for before, after in pairs)

    def percentile_ms(self, percent: float, of_syncs: bool = False) -> float | None:
        """Milliseconds that this share of the requests, or of the syncs, did not exceed; None where they are too few."""
        latency = self.outcome.syncs if of_syncs else self.outcome.latency
        requests = latency.total()
        if round(requests * (100 - percent) / 100, 6) < BEYOND:
            return None
        # As fio defines it, so that for one job both say the same number.
        bins = sorted(latency)
        seen = np.cumsum([latency[one] for one in bins])
        return bins[int(np.searchsorted(seen, math.ceil(round(percent / 100 * requests, 6))))] / 1e6


def read_lines(output: bytes) -> list[Line]:
    """The guest's lines; a cut one ends what can be believed."""
    lines: list[Line] = []
    for line in output.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


def sift(lines: Sequence[Line], loads: Sequence[Load], pair: int, variant: str) -> tuple[list[Measurement], list[str]]:
    """Turn what was finished and can be proven into measurements; and say in a line each what cannot be reported."""
    core = "this kernel" if variant == KERNEL else f"{variant} core"

    def refusal(what: str) -> str:
        return f"boot of the {core}, pair {pair}: {what}; the run is not reported"

    refused = [line for line in lines if line.get("kind") == "refused"]
    problems = [refusal(f"{line['name']}: {line['reason']}" if "name" in line else line["reason"]) for line in refused]
    if not lines or lines[0].get("kind") != "guest":
        return [], problems or [refusal(NOT_ENDED)]
    ended = lines[-1].get("kind") == "end"
    if not ended and all("name" in line for line in refused):
        problems.append(refusal(NOT_ENDED))
    if wrong := [line["core"] for line in lines if line.get("core", variant) != variant]:
        return [], [refusal(f"the active core was {wrong[0]}")]
    told = {line["name"]: line for line in lines if line.get("kind") == "step"}
    if told.keys() - {load.name for load in loads}:
        return [], [refusal("it did not run the scenarios of the plan")]
    known = told.keys() | {line.get("name") for line in refused}
    if ended and (missing := [load.name for load in loads if load.name not in known]):
        problems.append(refusal(f"it did not run the scenarios of the plan: {', '.join(missing)}"))
    measurements: list[Measurement] = []
    for load in (load for load in loads if load.name in told):
        try:
            little = _in_a_guest(told[load.name]) and load.entry.mem == catalogue.LITTLE
            if little and load.scenario.footprint <= lines[0]["memory"]:
                raise Failure("its files fit into the guest's memory; give it less with --mem")
            measurements += _measure(told[load.name], load, pair, variant)
        except Failure as failure:
            problems.append(f"{load.name}, {core}: {failure}; the run is not reported")
    return measurements, problems


def _in_a_guest(line: Line) -> bool:
    """On real hardware nobody looks at the flusher's rounds."""
    return line["dontcache_round"] is not None


def _measure(line: Line, load: Load, pair: int, variant: str) -> list[Measurement]:
    scenario = load.scenario
    outcomes = jobs.parse(line["fio"], line["sync_began_ms"], line["durable_at_ms"], scenario, load.own_mode)
    if line["status"]:
        raise Failure(f"fio ended with status {line['status']}")
    samples = line["samples"]
    if not samples:
        raise Failure("nothing was sampled")
    temporary = {name for section in scenario.sections if section.temporary for name in section.names}
    cached = {name: pages for name, pages in line["cached_after"].items() if name not in temporary}
    if len(cached) != scenario.files:
        raise Failure(f"{len(cached)} files of {scenario.files}")
    if _in_a_guest(line):
        _prove(line, load, outcomes)
    else:
        _prove_by_cache(line, load, outcomes)
    before, after = line["counter_before"], line["counter_after"]
    # An earlier step's leftovers are not this step's peak.
    counter_peak = 0 if before is None else max(_counted(line)) - before
    with_sync = line["used_with_sync"]
    halves = [_half_ms(line, *both) for both in zip(scenario.sections, outcomes, strict=True)]
    if any(half is not None and not 0 < half < o.durable_ms for half, o in zip(halves, outcomes, strict=True)):
        raise Failure("the samples do not show when half of it was on the drive")
    workers = {name: value for name, value in with_sync.items() if name == "worker_seconds"}
    return [
        Measurement(
            pair=pair,
            variant=variant,
            load=load.name,
            scenario=scenario.name if len(outcomes) == 1 else f"{scenario.name}: {section.name}",
            mode=load.mode,
            place=load.place,
            drive=str(load.drive),
            first=section is scenario.sections[0],
            outcome=outcome,
            # What the counter counts is dirty, too, seen by a sample or not.
            peak_dirty_pages=max(counter_peak, *(int(row[DIRTY]) for row in samples)),
            cached_pages=sum(cached.values()),
            counter_after=None if before is None else after - before,
            used={**line["used"], **workers},
            device={name.removeprefix("device_"): v for name, v in with_sync.items() if name.startswith("device_")},
            written=sum(o.bytes for o, s in zip(outcomes, scenario.sections, strict=True) if not (s.reads or s.temporary)),
            moved=sum(outcome.bytes for outcome in outcomes),
            samples=samples,
            half_ms=half,
            paced=bool(section.rate),
            server_threads=line["server_threads"],
        )
        for section, outcome, half in zip(scenario.sections, outcomes, halves, strict=True)
    ]


def _half_ms(line: Line, section: jobs.Section, outcome: jobs.Outcome) -> float | None:
    """See Measurement. Between two samples the device is taken to be steady."""
    if section.rate or section.ios_per_job is None or "device_written" not in line["used_with_sync"]:
        return None
    moved = [row[READ if section.reads else WRITTEN] for row in line["samples"]]
    half = np.interp(moved[-1] / 2, moved, [row[0] for row in line["samples"]])
    return float(line["samples_began_ms"] + 1e3 * half) - outcome.start_ms


def _counted(line: Line) -> list[int]:
    """What was seen of the counter. A round of the flusher begins with what it claims, so it proves movement, too."""
    return [*(int(row[COUNTED]) for row in line["samples"]), line["counter_at_end"], line["dontcache_round"] or 0]


def _prove(line: Line, load: Load, outcomes: Sequence[jobs.Outcome]) -> None:
    """A guest has a counter of its own, which moves for DONTCACHE writes and for nothing else.

    Direct writes dirty no memory, so that they are steady from the first one on.
    """
    scenario, mode = load.scenario, load.mode
    written = sum(o.bytes for o, s in zip(outcomes, scenario.sections, strict=True) if not s.reads)
    steady = "burst" not in scenario.name and scenario.written and mode != catalogue.SCALE
    if steady and written < catalogue.STEADY * line["background_pages"] * PAGE:
        raise Failure(f"it wrote {written / 1e6:.0f} MB, less than {catalogue.STEADY} times the background threshold")
    before = line["counter_before"]
    if before is None:
        raise Failure("there is no DONTCACHE counter for its device")
    if written and not line["used_with_sync"]["device_flushes"]:
        raise Failure("its drive was never flushed, so nothing proves that it keeps what was written")
    *counted, most_pages = _counted(line)
    moved = any(value != before for value in counted) or most_pages > 0
    uncached = [section for section in scenario.sections if section.uncached(mode)]
    # A server that writes directly hands what is no whole block to DONTCACHE.
    by_server = load.place == catalogue.NFS and mode == catalogue.SCALE
    if moved and not uncached and not by_server:
        raise Failure("the DONTCACHE counter moved without DONTCACHE")
    # Where a client has each write synced, pages may be clean before a sample: then none must stay.
    synced = load.place == catalogue.NFS and all(section.block <= SYNCED_BY_CLIENT for section in uncached)
    gone = synced and sum(line["cached_after"].values()) * PAGE < LEFT_BY_UNCACHED * scenario.written
    if not moved and not gone and any(not section.reads for section in uncached):
        raise Failure("the DONTCACHE counter never moved, so nothing proves DONTCACHE")
    if mode != catalogue.SCALE and all(section.reads for section in scenario.sections):
        left = sum(line["cached_at_end"].values()) * PAGE > LEFT_BY_UNCACHED * sum(o.bytes for o in outcomes)
        if left and uncached:
            raise Failure("what was read stayed cached, so nothing proves DONTCACHE")
        if not left and not uncached:
            raise Failure("nothing that was read stayed cached, without DONTCACHE")


def _prove_by_cache(line: Line, load: Load, outcomes: Sequence[jobs.Outcome]) -> None:
    """On real hardware what a section left of its files in the cache, after a sync, must be what its mode leaves."""
    pages = line["cached_after"]
    for section, outcome in zip(load.scenario.sections, outcomes, strict=True):
        if section.temporary:
            continue
        bare = load.place == catalogue.BARE
        cached = PAGE * sum(count for name, count in pages.items() if bare or section.owns(name))
        most = min(outcome.bytes, section.footprint)
        stays, told = cached > MUCH * most, f"{cached / 1e6:.1f} of {most / 1e6:.1f} MB"
        direct, uncached = (option == "1" for option in section.mode(load.mode))
        if stays and (direct or uncached):
            raise Failure(f"{told} stayed cached, so nothing proves {'direct I/O' if direct else 'DONTCACHE'}")
        if not stays and not (direct or uncached):
            raise Failure(f"only {told} stayed cached without DONTCACHE: memory is short, so nothing can be compared")
