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


def threshold(load: catalogue.Load) -> float:
    """About what may be dirty before the flusher writes: in a guest with 1 GB, 76 MB."""
    asked = load.entry.sysctls.get("vm/dirty_background_bytes")
    return asked or 76e6 / (1 << 30) * amount(load.mem) * (1 - load.entry.touched)


@pytest.mark.parametrize("name", LOADS)
def test_a_load_that_is_no_burst_writes_ten_times_the_background_threshold(name: str) -> None:
    load = LOADS[name]
    assert load.is_steady(load.scenario.written, threshold(load))
    called = replace(load, scenario=replace(load.scenario, name="x"))
    assert called.is_steady(load.scenario.written, threshold(load)) == ("burst" not in name)


def test_reads_are_about_memory() -> None:
    """Where all that is read fits into it, the second mode would read what the first one had cached."""
    for load in LOADS.values():
        assert load.mem == catalogue.LITTLE or load.scenario.written, load.name
        if load.mem == catalogue.LITTLE or load.entry.touched:
            assert load.scenario.footprint > (1 - load.entry.touched) * amount(load.mem), load.name


@pytest.mark.parametrize("machine", [boots.Machine(), native.Native()])
def test_a_drive_in_memory_holds_every_load(machine: boots.Machine) -> None:
    for load in machine.select(list(LOADS.values()), drives.FAST):
        assert load.scenario.at_most_written < 2 * amount(boots.SIZE_IN_MEMORY), load.name
        assert load.scenario.footprint < 0.95 * amount(boots.SIZE_IN_MEMORY), load.name


def test_what_runs_on_a_device_makes_no_files() -> None:
    for load in LOADS.values():
        if load.place == catalogue.BARE:
            assert load.scenario.files == 1 and "${BENCH_DIRECTORY}" not in load.scenario.text
            assert "filename=${BENCH_FILE}" in load.scenario.text.splitlines()


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
    with pytest.raises(Failure, match="--only fast matches nothing; names are like sequential/xfs/buffered"):
        catalogue.matrix(["fast"])


def test_limits_of_an_emulated_drive() -> None:
    drive = drives.parse("iops=1K,bps=9")
    assert (drive.name, drive.bps, drive.iops, drive.in_memory) == ("iops=1K,bps=9", "9", "1K", False)
