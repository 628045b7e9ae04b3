# SPDX-License-Identifier: GPL-2.0
"""What one boot measured, and the proof that it measured what it says.

A boot hands over JSON lines (see tools/guest/bench.py). They become measurements
only if they prove the core, that DONTCACHE was in effect where it was asked for
and nowhere else, and that all of the load was there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import histogram, jobs
from .errors import Failure

PAGE = 4096
PERCENTILES = (50.0, 99.0, 99.9)
DIRTY, WRITEBACK, COUNTED = 1, 2, 3
"""The columns of a sample; column 0 is seconds."""

Line = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One scenario in one mode, as a plan names it."""

    scenario: jobs.Scenario
    mode: str
    keep: bool

    def plan(self) -> dict[str, Any]:
        """What the guest must know."""
        return {
            "scenario": self.scenario.name,
            "mode": self.mode,
            "text": self.scenario.text,
            "environment": jobs.MODES[self.mode],
            "keep": self.keep,
        }


@dataclass(frozen=True)
class Measurement:
    """One step of one boot. Pages are of 4096 bytes."""

    pair: int
    core: str
    scenario: str
    mode: str
    outcome: jobs.Outcome
    peak_dirty_pages: int
    peak_writeback_pages: int
    cached_pages: int
    counter_peak: int
    dontcache_rounds: int
    """how often the flusher ran with the reason "dontcache"; 0 where it may not"""
    counter_after: int
    """what this step left on the counter, whatever earlier ones had left"""
    true_after: int
    sync_seconds: float
    samples: list[list[float]]

    def percentile_ms(self, percent: float) -> float:
        """Milliseconds that this share of the requests did not exceed."""
        return histogram.percentile(self.outcome.latency, percent) / 1e6


def plan(scenarios: Sequence[jobs.Scenario], modes: Sequence[str]) -> list[Step]:
    """Mode by mode, the scenarios in order; files stay where the next load needs them."""
    steps = []
    for mode in modes:
        for scenario, after in zip(scenarios, [*scenarios[1:], None], strict=True):
            steps.append(Step(scenario, mode, after is not None and after.overwrites))
    return steps


def to_text(plan: Mapping[str, Any]) -> str:
    """The plan as the one argument that the guest's driver takes."""
    return json.dumps(plan, separators=(",", ":"))


def read_lines(output: bytes) -> list[Line]:
    """The guest's lines; a cut one ends what can be believed."""
    lines: list[Line] = []
    for line in output.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


def accept(lines: Sequence[Line], steps: Sequence[Step], pair: int, core: str) -> list[Measurement]:
    """Turn a boot's lines into measurements, or refuse the whole run."""

    def refuse(what: str) -> Failure:
        return Failure(f"boot of the {core} core, pair {pair}: {what}; the run is not reported")

    for line in lines:
        if line.get("kind") == "refused":
            raise refuse(str(line["reason"]))
    if len(lines) < 2 or lines[0].get("kind") != "guest" or lines[-1].get("kind") != "end":
        raise refuse("the guest did not come to the end of its plan")
    for line in (lines[0], lines[-1]):
        if line["core"] != core:
            raise refuse(f"the active core was {line['core']}")
    done = lines[1:-1]
    if [(line["scenario"], line["mode"]) for line in done] != [(step.scenario.name, step.mode) for step in steps]:
        raise refuse("it did not run the scenarios of the plan")
    for step in steps:
        if step.scenario.footprint <= lines[0]["memory"]:
            raise refuse(f"{step.scenario.name} fits into the guest's memory; give it less with --mem")
    return [_measure(line, step, pair, core) for line, step in zip(done, steps, strict=True)]


def _measure(line: Line, step: Step, pair: int, core: str) -> Measurement:
    where = f"{step.scenario.name}, {step.mode}, {core} core"
    outcome = jobs.parse(line["fio"], step.scenario, step.mode)
    if line["status"]:
        raise Failure(f"{where}: fio ended with status {line['status']}; the run is not reported")
    samples = line["samples"]
    if not samples:
        raise Failure(f"{where}: nothing was sampled; the run is not reported")
    before = line["counter_before"][0]
    counted = [int(row[COUNTED]) for row in samples] + [line["counter_at_end"][0]]
    rounds = line["dontcache_rounds"]
    # A round of the flusher begins with what the counter claims, so it proves movement, too.
    moved = any(value != before for value in counted) or rounds["most_pages"] > 0
    if moved and step.mode != "dontcache":
        raise Failure(f"{where}: the DONTCACHE counter moved without DONTCACHE; the run is not reported")
    if not moved and step.mode == "dontcache":
        raise Failure(f"{where}: the DONTCACHE counter never moved, so nothing proves DONTCACHE; the run is not reported")
    if line["cached_after"]["files"] != step.scenario.jobs:
        raise Failure(
            f"{where}: {line['cached_after']['files']} files of {step.scenario.jobs}; the run is not reported"
        )
    # An earlier step's leftovers are not this step's peak.
    counter_peak = max(*counted, rounds["most_pages"]) - before
    return Measurement(
        pair=pair,
        core=core,
        scenario=step.scenario.name,
        mode=step.mode,
        outcome=outcome,
        # What the counter counts is dirty, too, seen by a sample or not.
        peak_dirty_pages=max(counter_peak, *(int(row[DIRTY]) for row in samples)),
        peak_writeback_pages=max(int(row[WRITEBACK]) for row in samples),
        cached_pages=line["cached_after"]["cache"],
        counter_peak=counter_peak,
        dontcache_rounds=rounds["rounds"],
        counter_after=line["counter_after"][0] - before,
        true_after=line["counter_after"][1],
        sync_seconds=line["sync_seconds"],
        samples=samples,
    )
