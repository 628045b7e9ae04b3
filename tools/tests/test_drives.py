# SPDX-License-Identifier: GPL-2.0
"""Drives have names or limits, and say what limits them."""

from __future__ import annotations

import pytest
from rust_writeback.bench import drives
from rust_writeback.errors import Failure


def test_a_request_of_the_cloud_in_memory_takes_its_share_of_a_second() -> None:
    slow = drives.CLOUD_IN_MEMORY
    assert slow.depth == 1 and 1e9 / slow.latency_ns == pytest.approx(float(slow.iops or 0), rel=0.001)


@pytest.mark.parametrize(
    ("text", "bps", "iops"),
    [
        ("bps=1G", "1G", None),
        ("iops=1K,bps=9", "9", "1K"),
    ],
)
def test_limits_of_an_emulated_drive(text: str, bps: str | None, iops: str | None) -> None:
    drive = drives.parse(text)
    assert (drive.name, drive.bps, drive.iops, drive.in_memory) == (text, bps, iops, False)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("cloud,bps=1G", "cloud"),
        ("bps=1G,iops=0", "iops=0"),
    ],
)
def test_a_drive_that_is_none_is_told_in_a_line(text: str, wrong: str) -> None:
    with pytest.raises(Failure) as caught:
        drives.parse(text)
    message = str(caught.value)
    assert message.startswith(f"--drive {text}: {wrong!r} is unknown; give cloud, stream, fast, or limits like")
    assert "\n" not in message and caught.value.status == 2
