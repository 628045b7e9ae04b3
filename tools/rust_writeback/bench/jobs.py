# SPDX-License-Identifier: GPL-2.0
"""Reads the job files, and checks the output of fio, or of our own program, against them.

A job file is the only place where a load is described. It is read here too, so that a run with fewer jobs or
fewer requests than the file promises is noticed. NAME.fio is fio's own. NAME.ini has the same form and describes
what fio cannot do: tools/guest/load.c runs it, and reports in fio's form.
"""

import configparser
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import paths
from ..errors import Failure
from ..vm.options import amount

FOLDER = paths.TOOLS / "loads"

MODES: dict[str, dict[str, str]] = {
    "buffered": {"BENCH_DIRECT": "0", "BENCH_UNCACHED": "0"},
    "dontcache": {"BENCH_DIRECT": "0", "BENCH_UNCACHED": "1"},
    "direct": {"BENCH_DIRECT": "1", "BENCH_UNCACHED": "0"},
}
"""What a mode sets in the job file, by the environment."""

LARGE = "large.data"
"""What ${BENCH_FILE} is called in a file system."""

READER = "reader."
"""What the files are called that our program's readers expect, with a number."""

CLOCKS_MS = 2
"""fio counts whole milliseconds, by a clock that is not the epoch's: so much may be missing between two times."""

LATE, SOON_MS = 0.1, 20
"""The part of a load's time that may be lost between its last write and the sync; of a short one, milliseconds."""

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
    smallest: int
    block: int
    """the smallest and the largest request"""
    file_bytes: int
    files: int
    filename: str
    options: tuple[str, str]
    """direct and uncached, as the file has them"""
    overwrites: bool = False
    temporary: bool = False
    """its files are removed before the end: what is written to them need not reach the drive"""
    rate: int = 0
    """the bytes a second that all jobs are paced to; 0 for as fast as they can"""
    seconds: int = 0
    """after which fio ends a job, whether it has done all or not; 0 for never"""

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

    def owns(self, name: str) -> bool:
        """Is this file one of the section's? Our program's writers have all that nobody reads."""
        return name in self.names if self.filename else not name.startswith(READER)

    @property
    def bytes(self) -> int:
        """What all its jobs read or write together, or about; nothing where they have no end of their own."""
        if not self.filename:
            return self.footprint
        return self.jobs * (self.ios_per_job or 0) * (self.smallest + self.block) // 2

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
    program: tuple[str, ...] = ()
    """the words for our own program before the mode, with ${BENCH_DIRECTORY} in them; without any, fio runs the file"""

    @property
    def written(self) -> int:
        """The bytes that the jobs that know their end write together."""
        return sum(section.bytes for section in self.sections if not section.reads)

    @property
    def paced_seconds(self) -> float:
        """What the load takes at least because it does not run as fast as it can."""
        return max((one.bytes / one.rate for one in self.sections if one.rate), default=0.0)

    @property
    def at_most_written(self) -> int:
        """What may reach the drive, with the files to be read and those that are temporary."""
        temporary = sum(section.rate for section in self.sections if section.temporary) * self.paced_seconds
        return self.written + sum(self.needs.values()) + int(temporary)

    @property
    def files(self) -> int:
        """How many files there are afterwards, besides temporary ones."""
        return sum(section.files for section in self._by_file() if not section.temporary)

    @property
    def footprint(self) -> int:
        """The bytes of all files."""
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


@dataclass
class Outcome:
    """What one section did: all its jobs together."""

    bytes: int
    ios: int
    start_ms: float
    """the first request of all jobs, in milliseconds of the epoch"""
    durable_ms: float
    """from the first request of all jobs until all that they wrote was on the drive; of reads until the last had come"""
    runtime_ms: int
    """from the first request of a job until its last one had returned, of the slowest job"""
    latency: Counter[int]
    """of a request, from its preparation on: a buffered write is mostly done while it is submitted"""
    syncs: Counter[int]
    """of those fsync() that the load does along its way"""

    @property
    def mb_per_s(self) -> float:
        """10^6 bytes a second until all was durable."""
        return self.bytes / 1e3 / self.durable_ms

    @property
    def handed_over_mb_per_s(self) -> float:
        """The same until it was handed over to the kernel."""
        return self.bytes / 1e3 / self.runtime_ms


def find(name: str) -> Path:
    """The job file of a scenario."""
    ours = FOLDER / f"{name}.ini"
    return ours if ours.exists() else FOLDER / f"{name}.fio"


def read(path: Path, factor: int = 1) -> Scenario:
    """Read the promises of a job file, with so many times as much to do: its sections, and [global]."""
    parser = configparser.ConfigParser(interpolation=None, comment_prefixes=("#", ";"), default_section="global")
    amount = re.compile(r"^((?:io_)?size|number_ios|files)=(\d+)(?=[kmg]?$)", re.MULTILINE)
    text = amount.sub(lambda m: f"{m[1]}={int(m[2]) * factor}", path.read_text())
    parser.read_string(text)
    ours = path.suffix == ".ini"
    parts = [parser[name] for name in parser.sections()]
    sections = tuple((_our_section if ours else _section)(part) for part in parts)
    title = "; ".join(section.title for section in sections)
    return Scenario(path.stem, title, text, sections, _program(path.stem, parts) if ours else ())


def _section(job: configparser.SectionProxy) -> Section:
    smallest, _, block = job.get("bsrange", "").partition("-")
    sizes = amount(smallest or job["bs"]), amount(block or job["bs"])
    total = amount(job.get("io_size", job["size"]))
    jobs = job.getint("numjobs", 1)
    endless = job.getboolean("time_based", False) or "loops" in job
    rate = amount(job["rate"]) if "rate" in job else job.getint("rate_iops", 0) * sum(sizes) // 2
    return Section(
        name=job.name,
        title=job["description"],
        reads="read" in job["rw"],
        jobs=jobs,
        ios_per_job=None if endless else job.getint("number_ios", total // sizes[1]),
        smallest=sizes[0],
        block=sizes[1],
        file_bytes=amount(job["size"]),
        files=jobs if "filename_format" in job else 1,
        filename=job.get("filename", job.get("filename_format", "")),
        overwrites=job.getboolean("overwrite", False),
        temporary=job.getboolean("unlink_each_loop", False),
        rate=jobs * rate,
        seconds=job.getint("runtime", 0),
        options=(job["direct"], job["uncached"]),
    )


def file_sizes(files: int, smallest: int, largest: int) -> list[int]:
    """What load.c gives its new files: powers of two, round and round."""
    sizes = [smallest]
    while sizes[-1] < largest:
        sizes.append(2 * sizes[-1])
    return [sizes[number % len(sizes)] for number in range(files)]


def _our_section(job: configparser.SectionProxy) -> Section:
    """A section of the program's, which either makes files or reads what is there."""
    jobs, block, reads = job.getint("numjobs", 1), amount(job["bs"]), "read" in job["rw"]
    files = job.getint("files", 1)
    spread = [amount(job[name if name in job else "file_size"]) for name in ("smallest", "largest")]
    sizes = file_sizes(files, *spread)
    return Section(
        name=job.name,
        title=job["description"],
        reads=reads,
        jobs=jobs,
        ios_per_job=None if reads else sum(-(-one // block) for one in sizes),
        smallest=min(block, spread[0]),
        block=block,
        file_bytes=sum(sizes) // files,
        files=jobs * files,
        filename=f"{READER}$jobnum" if reads else "",
        options=(job["direct"], job["uncached"]),
    )


def _program(name: str, parts: Sequence[configparser.SectionProxy]) -> tuple[str, ...]:
    """The words for load.c; see its top."""
    first, last = parts[0], parts[-1]
    if name == "tree":
        words = [first["files"], *(amount(first[size]) for size in ("smallest", "largest", "bs"))]
    else:
        words = [first["numjobs"], first["files"], amount(first["file_size"]), amount(first["bs"])]
        words += [last["numjobs"], amount(last["bs"])]
    return ("load", name, "${BENCH_DIRECTORY}", *map(str, words))


def version() -> str:
    """Of fio. It has uncached=1 since 3.39."""
    return subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True).stdout.strip()


def parse(text: str, sync_began: float, durable_at: float, scenario: Scenario, mode: str) -> list[Outcome]:
    """Read json+, an outcome for each section; refuse what is not exactly the load that was planned.

    The sync began, and all was durable, at so many milliseconds of the epoch. The mode is the load's own.
    """
    reads = {section.name: section.reads for section in scenario.sections}
    try:
        document = json.loads(text[text.find("{\n") :])
        common = document.get("global options", {})
        found = [_job(job, common, reads[job["jobname"]]) for job in document["jobs"]]
        ended = max(job["start_ms"] + job["runtime_ms"] for job in found)
    except (ValueError, KeyError, TypeError):
        raise Failure("fio's output cannot be read") from None
    for job in found:
        if job["error"]:
            raise Failure(f"fio reports an error in a job: {os.strerror(job['error'])}")
    late = 0.0 if scenario.program or not scenario.written else sync_began - ended
    if late < -CLOCKS_MS:
        raise Failure(f"the sync began {-late:.0f} ms before the last write")
    outcomes = []
    for section in scenario.sections:
        of_section = [job for job in found if job["section"] == section.name]
        outcome = _outcome(section, mode, of_section, durable_at)
        if late > max(SOON_MS, LATE * outcome.durable_ms):
            raise Failure(f"the sync began {late:.0f} ms after the last write, of {outcome.durable_ms:.0f} in all")
        outcomes.append(outcome)
    return outcomes


def _outcome(section: Section, mode: str, found: list[dict[str, Any]], durable_at: float) -> Outcome:
    done = "read" if section.reads else "wrote"
    if len(found) != section.jobs:
        raise Failure(f"{len(found)} jobs ran of {section.jobs}")
    for job in found:
        ios, least, most = job["ios"], job["ios"] * section.smallest, job["ios"] * section.block
        if section.ios_per_job is None and ios < FEWEST:
            raise Failure(f"a job {done} {ios} times, less than {FEWEST}")
        cut = 0 < 1000 * section.seconds <= job["runtime_ms"] + CLOCKS_MS
        if not least <= job["bytes"] <= most or section.ios_per_job not in (None, ios) and not cut:
            raise Failure(f"a job {done} {ios} times of {section.ios_per_job}")
        if job["mode"] != section.mode(mode):
            raise Failure("fio ran in another mode")
    outcome = Outcome(
        bytes=sum(job["bytes"] for job in found),
        ios=sum(job["ios"] for job in found),
        start_ms=min(job["start_ms"] for job in found),
        durable_ms=max(job["durable_ms"] for job in found),
        runtime_ms=max(job["runtime_ms"] for job in found),
        latency=sum((job["latency"] for job in found), Counter[int]()),
        syncs=sum((job["syncs"] for job in found), Counter[int]()),
    )
    if section.reads:
        outcome.durable_ms = outcome.runtime_ms
    elif not outcome.durable_ms:
        outcome.durable_ms = durable_at - outcome.start_ms
    if outcome.latency.total() != outcome.ios:
        raise Failure("the latency histogram lacks requests")
    if not outcome.runtime_ms or outcome.durable_ms < outcome.runtime_ms - CLOCKS_MS:
        raise Failure("fio measured no time")
    return outcome


def _bins(latency: Mapping[str, Any]) -> Counter[int]:
    """Nanoseconds -> how many requests took that long, by fio's bins, which are 1.6 % wide."""
    return Counter({int(key): count for key, count in latency.get("bins", {}).items() if count})


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
        "start_ms": job.get("job_start", 0),
        "durable_ms": job.get("durable", 0.0),
        "latency": _bins(traffic["lat_ns"]),
        "syncs": _bins(job.get("sync", {}).get("lat_ns", {})),
    }
