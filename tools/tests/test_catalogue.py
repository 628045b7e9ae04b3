# SPDX-License-Identifier: GPL-2.0
"""Every load that there is a file for is run, on the drive and with the memory that it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench_samples import FOLDER, LOADS
from rust_writeback.bench import boots, catalogue, drives, jobs, native
from rust_writeback.errors import Failure
from rust_writeback.vm.options import amount

ENTRIES = {entry.name: entry for entry in catalogue.CATALOGUE}


def test_every_job_file_is_in_the_catalogue_and_the_other_way_round() -> None:
    files = {path.stem: path for path in FOLDER.iterdir()}
    assert {path.suffix for path in files.values()} == {".fio", ".ini"}
    assert set(ENTRIES) == set(files)
    runs = [(entry.name, place) for entry in catalogue.CATALOGUE for place in entry.places]
    assert len(set(runs)) == len(runs)
    for name, path in files.items():
        assert jobs.find(name, FOLDER) == path
    assert {path.stem for path in FOLDER.glob("*.ini")} == {"tree", "compaction"}


def test_every_load_moves_something_in_a_mode_and_a_place_that_there_is() -> None:
    for load in LOADS.values():
        assert load.moved > 0, load.name
        assert load.mode in catalogue.ALL_MODES and load.place in catalogue.PLACES
    for entry in catalogue.CATALOGUE:
        assert set(entry.modes) <= set(catalogue.ALL_MODES) and set(entry.places) <= set(catalogue.PLACES)
        assert {load.place for load in LOADS.values() if load.entry is entry} == set(entry.places)


def test_every_load_says_its_drive() -> None:
    for load in LOADS.values():
        assert load.drive is load.entry.drive and load.drive in drives.PROFILES.values()
    of_drives = {
        name: {entry.name for entry in catalogue.CATALOGUE if entry.drive is drive}
        for name, drive in drives.PROFILES.items()
    }
    assert of_drives["fast"] == {"depth-1", "random"}
    assert {"small-4k", "append", "paced", "random-burst", "tree", "temp-burst", "compaction"} < of_drives["cloud"]
    assert {"sequential", "writers-4", "writers-32", "memory", "noisy", "device-read"} < of_drives["stream"]


def test_loads_about_memory_have_less_of_it_than_files() -> None:
    about = {load.scenario.name for load in LOADS.values() if load.mem == catalogue.LITTLE and load.place != "nfs"}
    assert about == {"sequential-read", "random-read", "noisy", "mixed", "device-read"}
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


def test_a_server_has_more_files_than_memory_and_its_client_no_cache() -> None:
    loads = [load for load in LOADS.values() if load.place == catalogue.NFS]
    assert len(loads) == 8 * len(catalogue.ALL_MODES)
    assert {load.mem for load in loads} == {catalogue.LITTLE} and {load.drive for load in loads} == {drives.CLOUD}
    for load in loads:
        assert load.own_mode == "direct"
        assert {section.mode(load.own_mode) for section in load.scenario.sections} == {("1", "0")}


def test_reads_are_about_memory() -> None:
    """Where all that is read fits into it, the second mode would read what the first one had cached."""
    assert all(load.mem == catalogue.LITTLE for load in LOADS.values() if not load.scenario.written)


@pytest.mark.parametrize("machine", [boots.Machine(), native.Native()])
def test_a_drive_in_memory_holds_every_load(machine: boots.Machine) -> None:
    for load in machine.select(list(LOADS.values()), drives.FAST):
        assert load.scenario.at_most_written < 2 * amount(machine.size_in_memory), load.name
        assert load.scenario.footprint < 0.95 * amount(machine.size_in_memory), load.name


def test_direct_writes_stand_beside_the_others() -> None:
    """But for records that are no whole blocks, and a load whose readers are what it is about."""
    without = {"append", "append-paced-burst", "mixed"}
    for entry in catalogue.CATALOGUE:
        assert (entry.modes == catalogue.ALL_MODES) == (entry.name not in without), entry.name
    for load in LOADS.values():
        aligned = all(section.smallest % 4096 == 0 for section in load.scenario.sections)
        assert aligned == (not load.scenario.name.startswith("append")), load.name
    shown = catalogue.matrix(catalogue.SHORT, FOLDER)
    assert {load.scenario.name for load in shown if load.mode == "direct"} == {"small-4k", "random-burst"}


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
    found = [load.name for load in catalogue.matrix(patterns, FOLDER)]
    expected = names or ["writers-4/ext4/dontcache", "writers-4/ext4/direct", "device-read/device/buffered"]
    assert found == expected


def test_only_that_matches_nothing_is_told() -> None:
    with pytest.raises(Failure, match="--only fast matches nothing; names are like sequential/xfs/buffered"):
        catalogue.matrix(["fast"], FOLDER)


def test_a_drive_that_is_asked_for_is_that_of_all_loads() -> None:
    machine, loads = boots.Machine(), list(LOADS.values())
    assert machine.select(loads, None) == loads
    assert {load.drive for load in machine.select(loads, drives.FAST)} == {drives.FAST}
    assert len(machine.share_out(machine.select(loads, drives.FAST))) == 2 * len(catalogue.PLACES) - 1


def test_a_paced_load_is_given_its_time() -> None:
    machine, paced = boots.Machine(), LOADS["paced/xfs/buffered"]
    assert paced.scenario.paced_seconds == pytest.approx(paced.scenario.written / (4 * 1000 * (20 << 10)))
    assert paced.scenario.paced_seconds > 2
    assert machine.load_seconds(paced) > paced.scenario.paced_seconds
    big = LOADS["sequential/xfs/buffered"]
    assert machine.load_seconds(big) > big.moved / amount("112M")
