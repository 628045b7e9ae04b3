# SPDX-License-Identifier: GPL-2.0
"""KVM is believed after a boot under it, and for as long as that says something."""

from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.vm import accel, qemu


class Trial:
    """Counts how often somebody wanted to know."""

    def __init__(self, works: bool) -> None:
        self.works = works
        self.runs = 0

    def __call__(self) -> bool:
        self.runs += 1
        return self.works


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A host with a /dev/kvm that can be opened, and no verdict yet."""
    (tmp_path / "kvm").touch()
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(accel, "VERDICT", tmp_path / "build" / "accel.json")
    monkeypatch.setattr(accel, "DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(qemu, "version", lambda: "1")


def test_one_trial_is_enough() -> None:
    trial = Trial(True)
    assert [accel.choose(trial), accel.choose(trial)] == ["kvm", "kvm"]
    assert trial.runs == 1


def test_a_failed_trial_counts_once_the_kernel_ran_without_kvm() -> None:
    trial = Trial(False)
    assert [accel.choose(trial), accel.choose(trial)] == ["tcg", "tcg"]
    assert trial.runs == 2
    accel.remember("tcg")
    assert accel.choose(trial) == "tcg" and trial.runs == 2


def test_another_qemu_is_tried_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    accel.remember("tcg")
    monkeypatch.setattr(qemu, "version", lambda: "2")
    assert accel.choose(Trial(True)) == "kvm"


def test_no_device_no_trial(tmp_path: Path) -> None:
    (tmp_path / "kvm").unlink()
    trial = Trial(True)
    assert accel.choose(trial) == "tcg" and trial.runs == 0
