# SPDX-License-Identifier: GPL-2.0
"""The drive that forgets what was not flushed, and the check that must find what is lost."""

import importlib
import random
from pathlib import Path
from types import ModuleType

import pytest
from rust_writeback.check import power_cuts
from rust_writeback.vm.torn_drive import Drive, SECTOR
from rust_writeback.errors import Failure

OLD, NEW = b"o" * SECTOR, b"n" * SECTOR


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The guest's script."""
    monkeypatch.setenv("NVME", "/dev/null")
    return importlib.import_module("power_cuts")


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    return Drive(64 * SECTOR, tmp_path)


def test_sectors_that_were_not_flushed_are_old_or_new(drive: Drive) -> None:
    drive.write(0, OLD * 64)
    drive.flush()
    assert not drive.try_off(), "there is nothing to lose"
    for sector in range(0, 64, 8):
        drive.write(sector * SECTOR, NEW * 8)
    assert drive.try_off()
    held, lost = drive.forget(random.Random(2))
    content = drive.read(0, 64 * SECTOR)
    sectors = [content[start : start + SECTOR] for start in range(0, len(content), SECTOR)]
    assert (held, lost) == (64, sectors.count(OLD))
    assert 0 < lost < 64 and sectors.count(NEW) == held - lost
    assert any(len({*sectors[start : start + 8]}) == 2 for start in range(0, 64, 8)), "no write is torn"


def test_of_two_writes_either_may_be_lost(drive: Drive) -> None:
    found = set()
    for seed in range(32):
        drive.write(0, OLD)
        drive.flush()
        drive.write(0, NEW)
        drive.write(0, b"x" * SECTOR)
        drive.forget(random.Random(seed))
        found.add(drive.read(0, 1))
    assert found == {b"o", b"n", b"x"}


def test_a_cut_needs_a_load(drive: Drive, tmp_path: Path) -> None:
    # Acknowledgements, a counter that moves, and a drive with something to lose.
    watch, other = (power_cuts.Watch(drive, tmp_path, moment=0.0) for _ in range(2))
    drive.write(0, NEW)
    watch.take(b"load 3 0\n")
    (tmp_path / "0" / "1").mkdir(parents=True)
    other.take(b"load 0 0\n")
    drive.flush()
    watch.take(b"load 0 0\n")
    drive.write(0, NEW)
    with pytest.raises(power_cuts.PowerCut):
        watch.take(b"load 0 0\n")


@pytest.mark.parametrize(("said", "why"), [(b"load 0 0\n", "no load after"), (b"load 0 512\n", "warned")])
def test_no_load_and_a_warning_are_failures(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes, why: str
) -> None:
    monkeypatch.setattr(power_cuts, "PATIENCE", -1.0)
    with pytest.raises(Failure, match=why):
        power_cuts.Watch(drive, tmp_path, moment=0.0).take(said)


STATES = [b"a" * 9000, b"a" * 5000 + b"b" * 6000, b"a" * 7000]
POSSIBLE = [*STATES, b"a" * 8192 + b"b" * 808, b"a" * 8192 + b"\0" * 2000]
LOST = [b"", b"a" * 6999, b"a" * 5000 + b"b" * 6001, b"a" * 4999 + b"b" * 4001, b"a" * 100 + b"\0" + b"a" * 8899]


@pytest.mark.parametrize(("found", "lost"), [*((found, False) for found in POSSIBLE), *((found, True) for found in LOST)])
def test_a_file_is_in_one_of_its_states_or_has_lost_something(load: ModuleType, found: bytes, lost: bool) -> None:
    assert bool(load.wrong(found, STATES)) == lost


def test_a_script_repeats(load: ModuleType) -> None:
    """Who checks knows every step of who writes; there are some of each kind, buffered and with DONTCACHE."""
    first, second = ([step for step, _ in zip(load.script("1.0.0"), range(300))] for _ in range(2))
    assert first == second
    assert {(step.data is None, step.flags) for step in first} >= {(True, 0), (False, 0), (False, 0x80)}
