# SPDX-License-Identifier: GPL-2.0
"""The benchmark in user-mode Linux: its drives, what it boots, and what is known of a boot."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_samples import LOADS, Guests, steps, variant
from rust_writeback.vm import emulated, images, native
from rust_writeback.bench import boots, catalogue, drives, full, journal
from rust_writeback.bench import native as machine
from rust_writeback.errors import Failure
from rust_writeback.progress import Bar

RUST = variant("rust")
ALL = list(LOADS.values())


class Natives(Guests):
    """Boots of the native machine that are made up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        super().__init__(monkeypatch, folder)
        self.asked: list[native.Options] = []
        self.made: list[str] = []
        self.status, self.core = 0, ""
        program = folder / "linux-native"
        program.write_text("a kernel")
        monkeypatch.setattr(native, "run", self.run_native)
        monkeypatch.setattr(native, "LINUX", program)
        monkeypatch.setattr(native, "ensure", lambda: self.made.append("kernel"))
        monkeypatch.setattr(images, "ensure_load", lambda: self.made.append("load"))
        monkeypatch.setattr(emulated, "run", None)

    def run_native(self, options: native.Options, command: list[str], stdout: Callable[[bytes], None]) -> emulated.VmResult:
        self.asked.append(options)
        stdout("".join(self.lines(options.core, json.loads(command[-1]))).encode())
        core, log = self.core or options.core, self.folder / "log"
        said = b"KeyError: 'jobs'\n" if self.status else b""
        return emulated.VmResult(self.status, b"", said, log, "native", [], "none", core, "7.3.4", 0, False, 1.25)


@pytest.fixture
def natives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Natives:
    return Natives(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("drive", "got"),
    [(None, drives.FAST), (drives.FAST, drives.FAST), (drives.CLOUD, drives.CLOUD_IN_MEMORY)],
)
def test_all_loads_are_on_a_drive_in_memory(drive: drives.Drive | None, got: drives.Drive) -> None:
    chosen = machine.Native().select(ALL, drive)
    assert {load.drive for load in chosen} == {got} and got.in_memory
    # The load is the same but for its drive.
    assert chosen == [replace(load, drive=got) for load in ALL if load.place != "nfs"]


@pytest.mark.parametrize("drive", [drives.STREAM, drives.parse("bps=1G")])
def test_a_drive_that_it_does_not_have_is_told(drive: drives.Drive) -> None:
    with pytest.raises(Failure, match="the native machine has only the drives fast and cloud"):
        machine.Native().select(ALL, drive)


def test_nothing_but_what_it_cannot_run_is_told() -> None:
    with pytest.raises(Failure, match=r"cannot run \*/nfs: it has no network"):
        machine.Native().select([load for load in ALL if load.place == "nfs"], None)


def test_its_boots_share_place_and_memory() -> None:
    one = machine.Native()
    shared = one.share_out(one.select(ALL, None))
    assert len(shared) == len({(load.place, load.mem) for together in shared for load in together}) == 6


def test_the_driver_runs_where_the_project_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And finds our own program before any other of that name."""
    monkeypatch.setattr(boots, "DRIVER", tmp_path)
    monkeypatch.setattr(images, "LOAD", tmp_path / "bin" / "load")
    command = machine.Native().command({"steps": [], "quote": "it's"})
    (tmp_path / "bin").mkdir()
    shown = tmp_path / "bin" / "python3"
    shown.write_text('#!/bin/sh\npwd\necho "${PATH%%:*}"\nprintf "%s\\n" "$@"\n')
    shown.chmod(0o755)
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert done == [str(tmp_path), str(tmp_path / "bin"), "-B", "-m", "bench", '{"steps":[],"quote":"it\'s"}']


def test_what_is_known_of_a_boot(natives: Natives) -> None:
    one = boots.Boot(2, RUST, steps("depth-1/xfs/buffered", "depth-1/xfs/dontcache"))
    with Bar("a boot", 1) as bar:
        boots.run(machine.Native(cpus=3), one, bar)
    (asked,) = natives.asked
    assert (asked.core, asked.cpus) == ("rust", 3)
    # What the loads get, the drive, and what the kernel needs for it.
    assert asked.mem == f"{1024 + 1280 + 1280 // 16}M"
    assert one.facts["accelerator"] == "native (user-mode Linux)"
    assert (one.facts["boot_seconds"], one.facts["kernel"], one.facts["kernel_warned"]) == (1.2, "7.3.4", False)
    assert {"date", "revision"} < one.facts.keys() and "qemu_deaths" not in one.facts
    known = one.known()
    assert (known["pair"], known["guest"]["core"], len(known["steps"])) == (2, "rust", 2)
    assert natives.plans[0]["drive"] == {"megabytes": 1280, "nanoseconds": 20_000, "depth": 1023, "kilobytes": 512}


@pytest.mark.parametrize(
    ("core", "status", "words"),
    [("c", 0, "the kernel ran the c core instead of rust"), ("", 2, "driver ended with status 2: KeyError: 'jobs'")],
)
def test_a_boot_that_went_wrong_is_no_result(natives: Natives, core: str, status: int, words: str) -> None:
    natives.core, natives.status = core, status
    one = boots.Boot(1, RUST, steps("depth-1/xfs/buffered"))
    with Bar("a boot", 1) as bar, pytest.raises(Failure, match=words):
        boots.run(machine.Native(), one, bar)
    assert one.output and not one.facts


def test_a_whole_benchmark(natives: Natives, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--only", "small-4k/xfs", "--only", "depth-1/xfs", "--only", "mixed/xfs", "--drive", "cloud"]
    assert full.main(["--native", "--pairs", "2", *chosen]) == 0
    assert natives.made == ["kernel", "load"]
    # Two sizes of memory: two boots of each core and pair.
    assert natives.booted == [
        *[("c", "xfs", 6), ("rust", "xfs", 6), ("c", "xfs", 1), ("rust", "xfs", 1)],
        *[("rust", "xfs", 6), ("c", "xfs", 6), ("rust", "xfs", 1), ("c", "xfs", 1)],
    ]
    sizes = {int(options.mem.removesuffix("M")) - (1280 + 1280 // 16) for options in natives.asked}
    assert sizes == {1024, 192} and {options.cpus for options in natives.asked} == {1}
    assert natives.plans[0]["drive"]["depth"] == 1 and natives.plans[0]["interval"] == 0.02
    document = natives.document("native")
    setup = document["setup"]
    assert setup["accelerator"] == "native (user-mode Linux)"
    assert setup["drives"] == "cloud (3000 requests/s, 128 KiB a request)"
    assert setup["command"] == f"python3 -m rust_writeback bench --native --pairs 2 {' '.join(chosen)}"
    assert setup["qemu_deaths"] == 0
    folder = natives.folder / "native"
    for text in ((folder / "report.md").read_text(), (folder / "index.html").read_text()):
        assert "user-mode Linux" in text and "QEMU" not in text and "emulated: only ratios" not in text
    assert "Rust/C over 2 pairs of boots" in capsys.readouterr().out


def test_it_goes_on_where_it_was_as_long_as_its_kernel_is_the_same(natives: Natives) -> None:
    arguments = ("--native", "--only", "depth-1/device", "--pairs", "2")
    natives.interrupted = 3
    with pytest.raises(KeyboardInterrupt):
        natives.bench(*arguments)
    natives.interrupted = 0
    assert natives.bench(*arguments) == 0
    assert natives.cores() == ["c", "rust", "rust", "c"]
    one = machine.Native()
    loads: list[catalogue.Load] = one.select(ALL, None)

    def key() -> Any:
        return journal.fingerprint(one, loads, [RUST], 2)

    before = key()
    (natives.folder / "bzImage").write_text("another kernel for QEMU")
    assert key() == before
    native.LINUX.write_text("another kernel")
    assert key() != before


def test_how_long_it_takes(natives: Natives) -> None:
    one = machine.Native()
    paced, big = LOADS["paced/xfs/buffered"], LOADS["device-read/device/buffered"]
    assert one.load_seconds(paced) == paced.scenario.paced_seconds
    assert one.load_seconds(big) == big.moved / machine.RATE
    both = one.select([paced, big], None)
    together = sum(one.load_seconds(load) for load in both)
    assert one.seconds(both) == pytest.approx(2 * machine.BOOT_SECONDS + 2 * machine.STEP_SECONDS + together)
