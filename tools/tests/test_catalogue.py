# SPDX-License-Identifier: GPL-2.0
"""Every load that there is a file for is run, and the loads that somebody asks for."""

import pytest
from rust_writeback.bench import catalogue, drives, jobs
from rust_writeback.errors import Failure


def test_every_job_file_is_in_the_catalogue_and_the_other_way_round() -> None:
    assert set(catalogue.NAMES) == {path.stem for path in jobs.FOLDER.iterdir()}
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
    with pytest.raises(Failure, match="--only fast matches nothing; names are like sequential/xfs/buffered"):
        catalogue.matrix(["fast"])


def test_limits_of_an_emulated_drive() -> None:
    drive = drives.parse("iops=1K,bps=9")
    assert (drive.name, drive.bps, drive.iops, drive.in_memory) == ("iops=1K,bps=9", "9", "1K", False)
