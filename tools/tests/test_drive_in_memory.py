# SPDX-License-Identifier: GPL-2.0
"""The drive that the driver of the benchmark makes in the memory of the guest."""

from pathlib import Path

import pytest

from bench import drive  # noqa: E402
from bench import kernel as files  # noqa: E402


def test_a_drive_is_made_before_it_gets_its_power(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written: list[str] = []
    monkeypatch.setattr(drive, "FOLDER", str(tmp_path))
    monkeypatch.setattr(drive, "write", lambda path, text: written.append(f"{Path(path).name}={text}"))
    monkeypatch.setattr(drive, "NAME", "no-such-device/at-all")
    (tmp_path / "no-such-device").mkdir()
    with pytest.raises(files.Refused, match="the drive cannot be filled"):
        drive.make(512, 20000)
    assert written[-1] == "power=1" and {"memory_backed=1", "irqmode=2", "completion_nsec=20000"} < set(written)
    # It has to be flushed.
    assert "cache_size=1" in written
