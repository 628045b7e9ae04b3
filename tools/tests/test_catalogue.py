# SPDX-License-Identifier: GPL-2.0
"""Every load that there is a file for is run, on the drive and with the memory that it is about."""

from dataclasses import replace

import pytest
from bench_samples import LOADS
from rust_writeback.bench import boots, catalogue, drives, jobs, native
from rust_writeback.errors import Failure
from rust_writeback.vm.options import amount

ENTRIES = {entry.name: entry for entry in catalogue.CATALOGUE}


def test_every_job_file_is_in_the_catalogue_and_the_other_way_round() -> None:
    files = {path.stem: path for path in jobs.FOLDER.iterdir()}
    assert {path.suffix for path in files.values()} == {".fio", ".ini"}
    assert set(ENTRIES) == set(files)
    runs = [(entry.name, place) for entry in catalogue.CATALOGUE for place in entry.places]
    assert len(set(runs)) == len(runs)
    for name, path in files.items():
        assert jobs.find(name) == path


def test_loads_about_memory_have_less_of_it_than_files() -> None:
    for load in LOADS.values():
        if load.mem == catalogue.LITTLE:
            assert load.scenario.footprint > amount(load.mem), load.name


BACKGROUND = 76e6 / (1 << 30)
"""The background threshold of a guest with 1 GB, as a part of it."""


def threshold(load: catalogue.Load) -> float:
    """About what may be dirty before the flusher writes."""
    asked = load.entry.sysctls.get("vm/dirty_background_bytes")
    return asked or BACKGROUND * amount(load.mem) * (1 - load.entry.touched)


@pytest.mark.parametrize("name", LOADS)
def test_a_load_that_is_no_burst_writes_ten_times_the_background_threshold(name: str) -> None:
    load = LOADS[name]
    assert load.is_steady(load.scenario.written, threshold(load))
    called = replace(load, scenario=replace(load.scenario, name="x"))
    assert called.is_steady(load.scenario.written, threshold(load)) == ("burst" not in name)


def test_what_fits_beside_programs_that_use_the_memory_is_no_load() -> None:
    beside = [load for load in LOADS.values() if load.entry.touched]
    assert {load.scenario.name for load in beside} == {"memory"}
    for load in beside:
        assert load.scenario.footprint > (1 - load.entry.touched) * amount(load.mem), load.name


def test_reads_are_about_memory() -> None:
    """Where all that is read fits into it, the second mode would read what the first one had cached."""
    assert all(load.mem == catalogue.LITTLE for load in LOADS.values() if not load.scenario.written)


@pytest.mark.parametrize("machine", [boots.Machine(), native.Native()])
def test_a_drive_in_memory_holds_every_load(machine: boots.Machine) -> None:
    for load in machine.select(list(LOADS.values()), drives.FAST):
        assert load.scenario.at_most_written < 2 * amount(machine.size_in_memory), load.name
        assert load.scenario.footprint < 0.95 * amount(machine.size_in_memory), load.name


@pytest.mark.parametrize("name", [load.name for load in LOADS.values() if load.place == "device"])
def test_what_runs_on_a_device_makes_no_files(name: str) -> None:
    load = LOADS[name]
    assert load.scenario.files == 1
    assert "${BENCH_DIRECTORY}" not in load.scenario.text
    assert "filename=${BENCH_FILE}" in load.scenario.text.splitlines()


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["mixed"], ["mixed/xfs/dontcache", "mixed/ext4/dontcache"]),
        (["depth-1/device"], [f"depth-1/device/{mode}" for mode in catalogue.ALL_MODES]),
        (["tree/e*/buffered"], ["tree/ext4/buffered"]),
        (["writers-?/ext4/d*", "device-read/*/buffered"], []),
    ],
)
def test_only_takes_scenarios_places_and_modes(patterns: list[str], names: list[str]) -> None:
    found = [load.name for load in catalogue.matrix(patterns)]
    expected = names or ["writers-4/ext4/dontcache", "writers-4/ext4/direct", "device-read/device/buffered"]
    assert found == expected


def test_only_that_matches_nothing_is_told() -> None:
    with pytest.raises(Failure, match="--only fast matches nothing; names are like sequential/xfs/buffered"):
        catalogue.matrix(["fast"])


def test_a_request_of_the_cloud_in_memory_takes_its_share_of_a_second() -> None:
    slow = drives.CLOUD_IN_MEMORY
    assert slow.depth == 1 and 1e9 / slow.latency_ns == pytest.approx(float(slow.iops or 0), rel=0.001)


@pytest.mark.parametrize(("text", "bps", "iops"), [("bps=1G", "1G", None), ("iops=1K,bps=9", "9", "1K")])
def test_limits_of_an_emulated_drive(text: str, bps: str | None, iops: str | None) -> None:
    drive = drives.parse(text)
    assert (drive.name, drive.bps, drive.iops, drive.in_memory) == (text, bps, iops, False)
