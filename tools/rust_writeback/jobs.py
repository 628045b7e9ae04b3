# SPDX-License-Identifier: GPL-2.0
"""The fio job files: what they promise, and what fio says it did.

A job file is the only place where a load is described. It is read here too, so
that a run with fewer jobs or fewer requests than the file promises is noticed.
"""

from __future__ import annotations

import configparser
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import histogram, paths
from .errors import Failure

FOLDER = paths.TOOLS / "fio"
ORDER = ("sequential", "random", "writers-4", "writers-32")
"""A load with overwrite=1 writes into the files of the one before it."""

MODES: dict[str, dict[str, str]] = {
    "buffered": {"BENCH_DIRECT": "0", "BENCH_UNCACHED": "0"},
    "dontcache": {"BENCH_DIRECT": "0", "BENCH_UNCACHED": "1"},
    "direct": {"BENCH_DIRECT": "1", "BENCH_UNCACHED": "0"},
}
"""What a mode sets in the job file, by the environment."""

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Scenario:
    """One job file, and the promises in it. Sizes are in bytes."""

    name: str
    title: str
    text: str
    jobs: int
    ios_per_job: int
    block: int
    file_bytes: int
    overwrites: bool

    @property
    def written(self) -> int:
        """The bytes that all jobs write together."""
        return self.jobs * self.ios_per_job * self.block

    @property
    def footprint(self) -> int:
        """The bytes of all files, which must not fit into the guest's memory."""
        return self.jobs * self.file_bytes


@dataclass(frozen=True)
class Outcome:
    """What fio did in one scenario: all jobs together."""

    fio: str
    bytes: int
    ios: int
    runtime_ms: int
    latency: histogram.Histogram
    jobs: list[dict[str, Any]]

    @property
    def mb_per_s(self) -> float:
        """10^6 bytes a second, over the time that the slowest job took."""
        return self.bytes / 1e3 / self.runtime_ms


def size(text: str) -> int:
    """A size as the job files write it: 4k, 1m, 208m."""
    digits = text.strip().lower().rstrip("kmg")
    unit = text.strip().lower()[len(digits) :]
    if not digits.isdigit() or unit not in UNITS:
        raise ValueError(f"{text} is not a size")
    return int(digits) * UNITS[unit]


def read(path: Path) -> Scenario:
    """Read the promises of a job file: one job section, and [global]."""
    parser = configparser.ConfigParser(interpolation=None, comment_prefixes=("#", ";"), default_section="global")
    try:
        text = path.read_text()
        parser.read_string(text)
        (name,) = parser.sections()
        job = parser[name]
        if name != path.stem:
            raise ValueError(f"the job is called {name}")
        block = size(job["bs"])
        total = size(job.get("io_size", job["size"]))
        if total % block:
            raise ValueError("its size is not a multiple of its block")
        return Scenario(
            name=name,
            title=job["description"],
            text=text,
            jobs=job.getint("numjobs", 1),
            ios_per_job=total // block,
            block=block,
            file_bytes=size(job["size"]),
            overwrites=job.getboolean("overwrite", False),
        )
    except (OSError, KeyError, ValueError, configparser.Error) as error:
        reason = " ".join(str(error).split())
        raise Failure(f"{path.name} is not a job file of ours ({reason}); see the others in tools/fio") from None


def load(folder: Path = FOLDER) -> list[Scenario]:
    """Every scenario of the short comparison, in the order of a run."""
    return [read(folder / f"{name}.fio") for name in ORDER]


def require_uncached(fio: str = "fio") -> str:
    """The version of fio, which must know the option that this is all about."""
    try:
        version = subprocess.run([fio, "--version"], check=True, capture_output=True, text=True).stdout.strip()
        known = subprocess.run([fio, "--enghelp=io_uring,uncached"], capture_output=True).returncode == 0
    except (OSError, subprocess.CalledProcessError):
        raise Failure("fio does not run; the build root lacks it: remove the build root and run again") from None
    if not known or release(version) < (3, 39):
        raise Failure(f"fio lacks uncached=1: needs 3.39, this is {version}; take a newer fio into the build root")
    return version


def release(version: str) -> tuple[int, int]:
    """fio-3.39-12-gabcdef -> (3, 39); what cannot be read is older than all."""
    parts = version.removeprefix("fio-").split("-")[0].split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        return (0, 0)


def parse(text: str, scenario: Scenario, mode: str) -> Outcome:
    """Read fio's json+; refuse what is not exactly the load that was planned."""

    def refuse(what: str) -> Failure:
        return Failure(f"{scenario.name}, {mode}: {what}; the run is not reported")

    start = text.find("{\n")
    try:
        document = json.loads(text[start:])
        jobs = [_job(job) for job in document["jobs"]]
        options = dict(document.get("global options", {}), **document["jobs"][0].get("job options", {}))
    except (ValueError, KeyError, IndexError, TypeError):
        raise refuse("fio's output cannot be read") from None
    for job in jobs:
        if job["error"]:
            raise refuse(f"fio reports error {job['error']} in a job")
    if len(jobs) != scenario.jobs:
        raise refuse(f"{len(jobs)} jobs ran of {scenario.jobs}")
    for job in jobs:
        if job["ios"] != scenario.ios_per_job or job["bytes"] != scenario.ios_per_job * scenario.block:
            raise refuse(f"a job wrote {job['ios']} times of {scenario.ios_per_job}")
    if {"BENCH_DIRECT": options.get("direct"), "BENCH_UNCACHED": options.get("uncached")} != MODES[mode]:
        raise refuse("fio ran in another mode")
    latency = histogram.merge(job.pop("latency") for job in jobs)
    if histogram.count(latency) != sum(job["ios"] for job in jobs):
        raise refuse("the latency histogram lacks requests")
    runtime = max(job["runtime_ms"] for job in jobs)
    if not runtime:
        raise refuse("fio measured no time")
    return Outcome(
        fio=document.get("fio version", "unknown"),
        bytes=sum(job["bytes"] for job in jobs),
        ios=sum(job["ios"] for job in jobs),
        runtime_ms=runtime,
        latency=latency,
        jobs=jobs,
    )


def _job(job: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of one job that a report can need."""
    write = job["write"]
    return {
        "error": job["error"],
        "bytes": write["io_bytes"],
        "ios": write["total_ios"],
        "runtime_ms": write["runtime"],
        "user_cpu_percent": job["usr_cpu"],
        "system_cpu_percent": job["sys_cpu"],
        "latency": histogram.from_bins(write["clat_ns"].get("bins", {})),
    }
