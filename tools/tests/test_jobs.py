# SPDX-License-Identifier: GPL-2.0
"""The job files are what fio understands, and fio's output is what they promised."""

from __future__ import annotations

import copy
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bench_samples import fio_output
from rust_writeback.bench import catalogue, jobs
from rust_writeback.errors import Failure

FOLDER = Path(__file__).parents[1] / "fio"
SCENARIOS = {entry.name: jobs.read(FOLDER / f"{entry.name}.fio") for entry in catalogue.CATALOGUE}


def test_the_loads_of_the_short_comparison() -> None:
    chosen = {name: SCENARIOS[name] for name in catalogue.SHORT}
    shape = {name: (s.jobs, s.sections[0].block >> 10, bool(s.needs)) for name, s in chosen.items()}
    assert shape == {
        "sequential": (1, 1024, False),
        "random": (1, 4, True),
        "writers-4": (4, 1024, False),
        "writers-32": (32, 64, False),
    }
    assert len({scenario.footprint for scenario in chosen.values()}) == 1


@pytest.mark.parametrize("name", SCENARIOS)
def test_job_files_take_their_mode_from_outside_and_their_seed_from_inside(name: str) -> None:
    text = SCENARIOS[name].text
    for line in ("direct=${BENCH_DIRECT}", "uncached=${BENCH_UNCACHED}", "ioengine=io_uring", "randrepeat=1"):
        assert line in text.splitlines()
    assert "randseed=" in text


@pytest.mark.parametrize(("name", "mode"), [("random", "buffered"), ("writers-32", "direct")])
def test_real_fio_does_what_the_job_file_promises(tmp_path: Path, name: str, mode: str) -> None:
    if not shutil.which("fio"):
        pytest.skip("no fio here; the build root has it")
    text = SCENARIOS[name].text.replace("size=208m", "size=1m").replace("io_size=48m", "io_size=256k")
    job = tmp_path / f"{name}.fio"
    job.write_text(text.replace("size=6656k", "size=128k"))
    scenario = jobs.read(job)
    # Another engine, which needs no io_uring here and knows no uncached.
    real = tmp_path / "real.fio"
    real.write_text(
        job.read_text()
        .replace("ioengine=io_uring", "ioengine=psync")
        .replace("uncached=${BENCH_UNCACHED}\n", "")
        .replace("direct=${BENCH_DIRECT}", "direct=0")
    )
    files = tmp_path / "files"
    files.mkdir()
    places = {"BENCH_DIRECTORY": str(files), "BENCH_FILE": str(files / jobs.LARGE)}
    output = subprocess.run(
        ["fio", "--output-format=json+", str(real)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **jobs.MODES[mode], **places},
    ).stdout
    document = json.loads(output[output.index("{") :])
    direct, uncached = scenario.sections[0].mode(mode)
    document["global options"] |= {"direct": direct, "uncached": uncached}
    for entry in document["jobs"]:  # So little is done in less than fio's millisecond.
        entry["write"]["runtime"] = max(1, entry["write"]["runtime"])
    (outcome,) = jobs.parse(json.dumps(document, indent=1), scenario, mode)
    assert outcome.bytes == scenario.written
    assert outcome.fio.startswith("fio-")
    assert len(list(files.iterdir())) == scenario.jobs


def test_all_jobs_count() -> None:
    scenario = SCENARIOS["writers-4"]
    (outcome,) = jobs.parse(json.dumps(fio_output(scenario, "dontcache"), indent=1), scenario, "dontcache")
    assert (outcome.ios, outcome.bytes, outcome.runtime_ms) == (208, 208 << 20, 1000)
    assert outcome.mb_per_s == pytest.approx(218.1, abs=0.1)
    assert sum(outcome.latency.values()) == 208


def lost_job(document: dict[str, Any]) -> None:
    document["jobs"].pop()


def failed_job(document: dict[str, Any]) -> None:
    document["jobs"][1]["error"] = 28


def lost_requests(document: dict[str, Any]) -> None:
    document["jobs"][2]["write"]["total_ios"] -= 1


def lost_bins(document: dict[str, Any]) -> None:
    del document["jobs"][0]["write"]["clat_ns"]["bins"]


def other_mode(document: dict[str, Any]) -> None:
    document["jobs"][0]["job options"]["uncached"] = "0"


def no_time(document: dict[str, Any]) -> None:
    for job in document["jobs"]:
        job["write"]["runtime"] = 0


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lost_job, "3 jobs ran of 4"),
        (failed_job, "error 28"),
        (lost_requests, "51 times of 52"),
        (lost_bins, "lacks requests"),
        (other_mode, "another mode"),
        (no_time, "no time"),
    ],
)
def test_what_was_not_planned_is_refused(spoil: Any, words: str) -> None:
    scenario = SCENARIOS["writers-4"]
    document = copy.deepcopy(fio_output(scenario, "dontcache"))
    document["jobs"] = [copy.deepcopy(job) for job in document["jobs"]]
    spoil(document)
    with pytest.raises(Failure, match=words):
        jobs.parse(json.dumps(document, indent=1), scenario, "dontcache")


@pytest.mark.parametrize("text", ["", "fio: job failed", '{\n "jobs": []}', '{\n"jobs": [{}]}', '{\n "jobs": 3'])
def test_output_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(Failure, match="cannot be read"):
        jobs.parse(text, SCENARIOS["random"], "buffered")


@pytest.mark.parametrize(
    "text",
    ["", "[global]\n", "[x]\nbs=4k\n", "[t]\ndescription=d\nbs=4q\nsize=1m\n", "[t]\ndescription=d\nbs=3k\nsize=1m\n"],
)
def test_bad_job_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.fio"
    path.write_text(text)
    with pytest.raises(Failure, match="t.fio is not a job file of ours"):
        jobs.read(path)


@pytest.mark.parametrize(("text", "value"), [("4k", 4096), ("208m", 208 << 20), ("1G", 1 << 30), ("512", 512)])
def test_sizes(text: str, value: int) -> None:
    assert jobs.size(text) == value


@pytest.mark.parametrize(
    ("version", "release"), [("fio-3.39", (3, 39)), ("fio-3.40-12-gab12", (3, 40)), ("fio-x", (0, 0)), ("", (0, 0))]
)
def test_versions(version: str, release: tuple[int, int]) -> None:
    assert jobs.release(version) == release


@pytest.mark.parametrize(("version", "status"), [("fio-3.36", 0), ("fio-3.39", 1)])
def test_fio_without_the_option_is_refused(tmp_path: Path, version: str, status: int) -> None:
    fake = tmp_path / "fio"
    fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version} || exit {status}\n')
    fake.chmod(stat.S_IRWXU)
    with pytest.raises(Failure, match=r"fio lacks uncached=1: needs 3\.39"):
        jobs.require_uncached(str(fake))


def test_fio_that_is_missing_is_told() -> None:
    with pytest.raises(Failure, match="fio does not run"):
        jobs.require_uncached("/nonexistent/fio")


def test_the_fio_of_the_build_root_has_the_option() -> None:
    if not shutil.which("fio"):
        pytest.skip("no fio here; the build root has it")
    assert jobs.release(jobs.require_uncached()) >= (3, 39)
