# SPDX-License-Identifier: GPL-2.0
"""The fio job files: what they promise, and what fio says it did.

A job file is the only place where a load is described. It is read here too, so
that a run with fewer jobs or fewer requests than the file promises is noticed.
"""

from __future__ import annotations

import configparser
import errno
import json
import math
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import paths
from ..errors import Failure
from . import histogram

FOLDER = paths.TOOLS / "fio"

MODES: dict[str, dict[str, str]] = {
    "buffered": {"BENCH_DIRECT": "0", "BENCH_UNCACHED": "0"},
    "dontcache": {"BENCH_DIRECT": "0", "BENCH_UNCACHED": "1"},
    "direct": {"BENCH_DIRECT": "1", "BENCH_UNCACHED": "0"},
}
"""What a mode sets in the job file, by the environment."""

LARGE = "large.data"
"""What ${BENCH_FILE} is called in a file system."""

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

ERRORS = {
    errno.ENOSPC: "the device is full; give the load a larger one",
    errno.EOPNOTSUPP: "EOPNOTSUPP: there is no DONTCACHE here, or no such request",
    errno.EIO: "the device fails",
}
"""What fio's errors mean to a run."""

FEWEST = 100
"""Requests without which a job that ends with the others has no latency to speak of."""


@dataclass(frozen=True)
class Section:
    """One job section, and the promises in it. Sizes are in bytes."""

    name: str
    title: str
    reads: bool
    jobs: int
    ios_per_job: int | None
    """None: the jobs go on until the others have ended"""
    block: int
    file_bytes: int
    files: int
    filename: str
    overwrites: bool
    options: tuple[str, str]
    """direct and uncached, as the file has them"""

    def mode(self, mode: str) -> tuple[str, str]:
        """What these options are when the scenario runs in this mode."""
        values = {f"${{{name}}}": value for name, value in MODES[mode].items()}
        direct, uncached = (values.get(text, text) for text in self.options)
        return direct, uncached

    def uncached(self, mode: str) -> bool:
        """Does this section use DONTCACHE in this mode?"""
        return self.mode(mode)[1] == "1"

    @property
    def names(self) -> list[str]:
        """What its files are called in a file system."""
        name = self.filename.replace("${BENCH_FILE}", LARGE)
        return [name.replace("$jobnum", str(number)) for number in range(self.files)]

    @property
    def bytes(self) -> int:
        """What all its jobs read or write together; nothing where they have no end of their own."""
        return self.jobs * (self.ios_per_job or 0) * self.block

    @property
    def footprint(self) -> int:
        """The bytes of its files."""
        return self.files * self.file_bytes


@dataclass(frozen=True)
class Scenario:
    """One job file."""

    name: str
    title: str
    text: str
    sections: tuple[Section, ...]

    @property
    def jobs(self) -> int:
        """How many jobs there are in all."""
        return sum(section.jobs for section in self.sections)

    @property
    def written(self) -> int:
        """The bytes that the jobs that know their end write together."""
        return sum(section.bytes for section in self.sections if not section.reads)

    @property
    def files(self) -> int:
        """How many files there are afterwards."""
        return sum(section.files for section in self._by_file())

    @property
    def footprint(self) -> int:
        """The bytes of all files, which must not fit into the guest's memory."""
        return sum(section.footprint for section in self._by_file())

    @property
    def needs(self) -> dict[str, int]:
        """The files that must be there beforehand: name -> bytes."""
        return {
            name: section.file_bytes
            for section in self.sections
            if section.reads or section.overwrites
            for name in section.names
        }

    def _by_file(self) -> list[Section]:
        """Sections that share a file count once."""
        return list({section.filename: section for section in self.sections}.values())


@dataclass(frozen=True)
class Outcome:
    """What fio did in one section: all its jobs together."""

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

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of the jobs, user and system."""
        percent = [(job["runtime_ms"], job["user_cpu_percent"] + job["system_cpu_percent"]) for job in self.jobs]
        return math.fsum(runtime * share / 1e5 for runtime, share in percent)


def size(text: str) -> int:
    """A size as the job files write it: 4k, 1m, 208m."""
    digits = text.strip().lower().rstrip("kmg")
    unit = text.strip().lower()[len(digits) :]
    if not digits.isdigit() or unit not in UNITS:
        raise ValueError(f"{text} is not a size")
    return int(digits) * UNITS[unit]


def scaled(text: str, factor: int) -> str:
    """The text of a job file with sizes that are so many times as large; what is a size is so by its name."""
    size = re.compile(r"^((?:io_)?size)=(\d+)(?=[kmg]?$)", re.MULTILINE)
    return size.sub(lambda m: f"{m[1]}={int(m[2]) * factor}", text)


def read(path: Path, factor: int = 1) -> Scenario:
    """Read the promises of a job file: its sections, and [global]."""
    parser = configparser.ConfigParser(interpolation=None, comment_prefixes=("#", ";"), default_section="global")
    try:
        text = scaled(path.read_text(), factor)
        parser.read_string(text)
        sections = tuple(_section(name, parser[name]) for name in parser.sections())
        if not sections or len(sections) == 1 and sections[0].name != path.stem:
            raise ValueError(f"its jobs are called {' '.join(parser.sections()) or 'nothing'}")
        if all(section.ios_per_job is None for section in sections):
            raise ValueError("no job of it ends")
        title = "; ".join(section.title for section in sections)
        return Scenario(name=path.stem, title=title, text=text, sections=sections)
    except (OSError, KeyError, ValueError, configparser.Error) as error:
        reason = " ".join(str(error).split())
        raise Failure(f"{path.name} is not a job file of ours ({reason}); see the others in tools/fio") from None


def _section(name: str, job: configparser.SectionProxy) -> Section:
    block = size(job["bs"])
    total = size(job.get("io_size", job["size"]))
    if total % block:
        raise ValueError("its size is not a multiple of its block")
    if job["rw"] not in ("read", "randread", "write", "randwrite"):
        raise ValueError("a section either reads or writes")
    jobs = job.getint("numjobs", 1)
    return Section(
        name=name,
        title=job["description"],
        reads="read" in job["rw"],
        jobs=jobs,
        ios_per_job=None if job.getboolean("time_based", False) else total // block,
        block=block,
        file_bytes=size(job["size"]),
        files=jobs if "filename_format" in job else 1,
        filename=job.get("filename", job.get("filename_format", "")),
        overwrites=job.getboolean("overwrite", False),
        options=(job["direct"], job["uncached"]),
    )


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


def parse(text: str, scenario: Scenario, mode: str, *where: str) -> list[Outcome]:
    """Read fio's json+, an outcome for each section; refuse what is not exactly the load that was planned."""

    def refuse(what: str) -> Failure:
        return Failure(f"{', '.join((scenario.name, mode, *where))}: {what}; the run is not reported")

    start = text.find("{\n")
    try:
        document = json.loads(text[start:])
        common = document.get("global options", {})
        reads = {section.name: section.reads for section in scenario.sections}
        found = [_job(job, common, reads[job["jobname"]]) for job in document["jobs"]]
        if not found:
            raise ValueError("no jobs")
    except (ValueError, KeyError, TypeError):
        raise refuse("fio's output cannot be read") from None
    outcomes = []
    for job in found:
        if job["error"]:
            reason = ERRORS.get(job["error"])
            raise refuse(f"fio reports error {job['error']} in a job" + (f" ({reason})" if reason else ""))
    for section in scenario.sections:
        outcome = _outcome(section, mode, [job for job in found if job["section"] == section.name], refuse)
        outcomes.append(replace(outcome, fio=document.get("fio version", "unknown")))
    return outcomes


def _outcome(section: Section, mode: str, found: list[dict[str, Any]], refuse: Callable[[str], Failure]) -> Outcome:
    done = "read" if section.reads else "wrote"
    if len(found) != section.jobs:
        raise refuse(f"{len(found)} jobs ran of {section.jobs}")
    for job in found:
        whole = job["bytes"] == job["ios"] * section.block
        if section.ios_per_job is None and job["ios"] < FEWEST:
            raise refuse(f"a job {done} {job['ios']} times, less than {FEWEST}")
        if not whole or section.ios_per_job is not None and job["ios"] != section.ios_per_job:
            raise refuse(f"a job {done} {job['ios']} times of {section.ios_per_job}")
        if job.pop("mode") != section.mode(mode):
            raise refuse("fio ran in another mode")
    latency = histogram.merge(job.pop("latency") for job in found)
    if histogram.count(latency) != sum(job["ios"] for job in found):
        raise refuse("the latency histogram lacks requests")
    runtime = max(job["runtime_ms"] for job in found)
    if not runtime:
        raise refuse("fio measured no time")
    return Outcome(
        fio="",
        bytes=sum(job["bytes"] for job in found),
        ios=sum(job["ios"] for job in found),
        runtime_ms=runtime,
        latency=latency,
        jobs=found,
    )


def _job(job: Mapping[str, Any], common: Mapping[str, str], reads: bool) -> dict[str, Any]:
    """The figures of one job that a report can need, of the direction that it has."""
    traffic = job["read" if reads else "write"]
    options = {**common, **job.get("job options", {})}
    return {
        "section": job["jobname"],
        "mode": (options.get("direct"), options.get("uncached")),
        "error": job["error"],
        "bytes": traffic["io_bytes"],
        "ios": traffic["total_ios"],
        "runtime_ms": traffic["runtime"],
        "user_cpu_percent": job["usr_cpu"],
        "system_cpu_percent": job["sys_cpu"],
        "latency": histogram.from_bins(traffic["clat_ns"].get("bins", {})),
    }
