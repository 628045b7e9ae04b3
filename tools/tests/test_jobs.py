# SPDX-License-Identifier: GPL-2.0
"""Each job file is run and is what fio understands, and what a load says that it did is what it promised."""

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from bench_samples import DURABLE, HANDED_OVER, START, SYNCS, clocks, fio_output, parse
from rust_writeback.bench import catalogue, jobs
from rust_writeback.errors import Failure

SCENARIOS = {entry.name: jobs.read(jobs.find(entry.name)) for entry in catalogue.CATALOGUE}
OF_FIO = [name for name, scenario in SCENARIOS.items() if not scenario.program]

Document = dict[str, Any]


def test_every_job_file_is_in_the_catalogue_and_the_other_way_round() -> None:
    assert {entry.name for entry in catalogue.CATALOGUE} == {path.stem for path in jobs.FOLDER.iterdir()}
    runs = [(entry.name, place) for entry in catalogue.CATALOGUE for place in entry.places]
    assert len(set(runs)) == len(runs)


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["mixed"], ["mixed/xfs/dontcache", "mixed/ext4/dontcache"]),
        (["depth-1/device"], [f"depth-1/device/{mode}" for mode in catalogue.ALL_MODES]),
        (["tree/e*/buffered", "device-read/*/buffered"], ["tree/ext4/buffered", "device-read/device/buffered"]),
    ],
)
def test_only_takes_scenarios_places_and_modes(patterns: list[str], names: list[str]) -> None:
    assert [load.name for load in catalogue.matrix(patterns)] == names


@pytest.mark.parametrize("name", OF_FIO)
def test_job_files_take_their_mode_from_outside_and_their_seed_from_inside(name: str) -> None:
    lines = SCENARIOS[name].text.splitlines()
    assert {"direct=${BENCH_DIRECT}", "uncached=${BENCH_UNCACHED}", "randrepeat=1"} < set(lines)
    assert any(line.startswith("randseed=") for line in lines)
    # Latencies are whole ones; those of the completion alone leave out what a buffered write takes.
    assert {"lat_percentiles=1", "clat_percentiles=0", "disable_slat=1"} < set(lines)
    # Unless it is told which clock to take, fio tries one first, with threads that look like jobs.
    assert "clocksource=${BENCH_CLOCK}" in lines
    # fio may take what is handed over for done: to sync is the driver's part.
    assert not [line for line in lines if line.startswith(("end_fsync", "fsync_on_close"))]


def test_the_first_request_is_that_of_the_first_job() -> None:
    scenario = SCENARIOS["writers-4"]
    document = fio_output(scenario, "dontcache")
    for late, job in enumerate(document["jobs"]):
        job["job_start"] = START + 50 * late
        job["write"]["runtime"] = HANDED_OVER - 150
    (outcome,) = parse(document, scenario, "dontcache")
    assert (outcome.durable_ms, outcome.runtime_ms) == (DURABLE, HANDED_OVER - 150)
    assert outcome.mb_per_s == pytest.approx((1 << 30) / 1e3 / DURABLE)
    assert outcome.handed_over_mb_per_s == pytest.approx((1 << 30) / 1e3 / (HANDED_OVER - 150))


def test_our_own_program_keeps_the_time_itself_and_reads_are_done_when_the_last_has_come() -> None:
    scenario = SCENARIOS["compaction"]
    document = fio_output(scenario, "dontcache")
    document["jobs"][2]["durable"] = DURABLE + 500
    writers, readers = jobs.parse(json.dumps(document, indent=1), 0, 0, scenario, "dontcache")
    assert (writers.durable_ms, readers.durable_ms) == (DURABLE + 500, HANDED_OVER)
    assert (writers.syncs.total(), readers.syncs.total()) == (4 * SYNCS, 0)


def test_latency_includes_submission_and_syncs_are_separate() -> None:
    scenario = SCENARIOS["append"]
    document = fio_output(scenario, "dontcache")
    for job in document["jobs"]:
        job["write"]["clat_ns"] = {"N": 1, "bins": {"7": 1}}
        job["write"]["lat_ns"]["bins"]["8"] = 0
    document["jobs"][0]["write"]["lat_ns"]["bins"] = {"9": 128_000}
    (outcome,) = parse(document, scenario, "dontcache")
    assert dict(outcome.latency) == {9: 128_000, 100_000: 3 * 115_200, 900_000: 3 * 12_800}
    assert dict(outcome.syncs) == {5_000_000: 4 * SYNCS}


@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        ("writers-4", lambda jobs: jobs.pop(), "3 jobs ran of 4"),
        ("writers-4", lambda jobs: jobs[2]["write"].update(total_ios=4095), "4095 times of 4096"),
        ("writers-4", lambda jobs: jobs[0]["write"]["lat_ns"].pop("bins"), "lacks requests"),
        ("writers-4", lambda jobs: jobs[0]["job options"].update(uncached="0"), "another mode"),
        ("writers-4", lambda jobs: [job["write"].update(runtime=0) for job in jobs], "no time"),
        # What is on the drive was written before, whatever our own program says.
        ("compaction", lambda jobs: [job.update(durable=HANDED_OVER - 3) for job in jobs], "no time"),
        ("noisy", lambda jobs: jobs[1]["read"].update(total_ios=99, io_bytes=99 * 4096), "a job read 99 times, less than 100"),
        ("append", lambda jobs: jobs[3]["write"].update(io_bytes=128_000 * 299), "a job wrote 128000 times"),
        ("sequential", lambda jobs: jobs[0].update(error=28), "No space left"),
    ],
)
def test_output_of_another_load_is_refused(name: str, spoil: Callable[[list[Document]], object], words: str) -> None:
    document = fio_output(SCENARIOS[name], "dontcache")
    spoil(document["jobs"])
    with pytest.raises(Failure, match=words) as caught:
        parse(document, SCENARIOS[name], "dontcache")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("seconds", "refused"), [(1, True), (30, False)])
def test_a_job_that_its_time_limit_ended_is_accepted(seconds: int, refused: bool) -> None:
    scenario = SCENARIOS["small-4k"]
    document = fio_output(scenario, "direct")
    document["jobs"][0]["write"] |= {"total_ios": 1000, "io_bytes": 1000 * 4096, "runtime": 1000 * seconds - 1}
    document["jobs"][0]["write"]["lat_ns"] = {"N": 1000, "bins": {"300000": 1000}}
    end = START + 1000 * seconds
    with pytest.raises(Failure, match="wrote 1000 times of 262144") if refused else contextlib.nullcontext():
        (outcome,) = jobs.parse(json.dumps(document, indent=1), end, end, scenario, "direct")
        assert outcome.bytes == 1000 * 4096


@pytest.mark.parametrize(
    ("name", "speed", "began", "durable", "words"),
    [
        # All is durable after 1250 ms, of which a tenth may pass between the last write and the sync.
        ("writers-4", 1, 124, 0, None),
        ("writers-4", 1, 126, 0, "the sync began 126 ms after the last write"),
        # A short load has a few milliseconds.
        ("writers-4", 100, jobs.SOON_MS, jobs.SOON_MS, None),
        ("writers-4", 100, jobs.SOON_MS + 1, jobs.SOON_MS + 1, "the sync began 21 ms after"),
        # What was written after a sync began may not be on the drive.
        ("writers-4", 1, -jobs.CLOCKS_MS, 0, None),
        ("writers-4", 1, -50, 0, "before the last write"),
        # What is only read needs no sync.
        ("sequential-read", 1, 500, 500, None),
    ],
)
def test_a_sync_begins_soon_after_the_last_write(name: str, speed: int, began: int, durable: int, words: str | None) -> None:
    text, (soon, then) = json.dumps(fio_output(SCENARIOS[name], "buffered", speed), indent=1), clocks(speed)
    with pytest.raises(Failure, match=words) if words else contextlib.nullcontext():
        (outcome,) = jobs.parse(text, soon + began, then + durable, SCENARIOS[name], "buffered")
        assert outcome.durable_ms == (HANDED_OVER if name == "sequential-read" else DURABLE / speed + durable)


@pytest.mark.parametrize("text", ["", '{\n "jobs": []}', '{\n"jobs": [{}]}'])
def test_output_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(Failure, match="cannot be read"):
        jobs.parse(text, *clocks(), SCENARIOS["random"], "buffered")
