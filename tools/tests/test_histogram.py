# SPDX-License-Identifier: GPL-2.0
"""Percentiles come from added bins and agree with fio's own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rust_writeback.bench import histogram


def fio(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    if not shutil.which("fio"):
        pytest.skip("no fio here; the build root has it")
    command = ["fio", "--output-format=json+", "--name=t", "--ioengine=psync", "--thread", "--rw=randwrite"]
    command += ["--bs=4k", "--size=1m", "--lat_percentiles=1", "--clat_percentiles=0"]
    command += [f"--directory={folder}", *arguments]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    jobs: list[dict[str, Any]] = json.loads(output[output.index("{") :])["jobs"]
    return [job["write"]["lat_ns"] for job in jobs]


def test_percentiles_of_one_job_are_those_of_fio(tmp_path: Path) -> None:
    (latency,) = fio(tmp_path)
    bins = histogram.from_bins(latency["bins"])
    assert histogram.count(bins) == latency["N"] == 256
    for percent, nanoseconds in latency["percentile"].items():
        assert histogram.percentile(bins, float(percent)) == nanoseconds, percent


def test_merged_percentile_is_not_the_mean_of_percentiles() -> None:
    quick, slow = {10: 1000}, {1000: 10}
    merged = histogram.merge([quick, slow])
    assert histogram.percentile(merged, 99) == 10
    assert histogram.percentile(merged, 99.9) == 1000


@pytest.mark.parametrize(
    ("percent", "value"), [(0.001, 1), (1, 1), (50, 50), (50.1, 51), (99, 99), (99.9, 100), (100, 100)]
)
def test_percentile_is_the_smallest_value_that_enough_requests_do_not_exceed(percent: float, value: int) -> None:
    assert histogram.percentile({i: 1 for i in range(1, 101)}, percent) == value


def test_percentile_is_exact_where_floating_point_is_not() -> None:
    # 0.999 * 1000 is a little more than 999 in binary.
    assert histogram.percentile({1: 999, 2: 1}, 99.9) == 1


def test_empty_bins_are_dropped_and_nothing_has_no_percentile() -> None:
    assert histogram.from_bins({"5": 0, "6": 1}) == {6: 1}
    with pytest.raises(ValueError, match="empty"):
        histogram.percentile({}, 50)
