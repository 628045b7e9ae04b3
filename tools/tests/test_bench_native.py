# SPDX-License-Identifier: GPL-2.0
"""The benchmark in user-mode Linux: its drives, what it boots, and what is known of a boot."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_samples import LOADS, Guests
from rust_writeback.build import kernel
from rust_writeback.build.variants import NATIVE, Variant
from rust_writeback.vm import emulated, images, native
from rust_writeback.bench import boots, catalogue, drives, full, journal
from rust_writeback.bench import native as machine
from rust_writeback.errors import Failure

RUST = "rust"
ALL = list(LOADS.values())


class Natives(Guests):
    """Boots of the native machine that are made up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        super().__init__(monkeypatch, folder)
        self.asked: list[native.Options] = []
        self.made: list[Variant | Path] = []
        program = folder / "linux-native"
        program.write_text("a kernel")
        monkeypatch.setattr(native, "run", self.run_native)
        monkeypatch.setattr(machine.Native, "image", program)
        monkeypatch.setattr(kernel, "ensure", self.made.append)
        monkeypatch.setattr(images, "ensure_program", lambda source, program: self.made.append(program))
        monkeypatch.setattr(emulated, "run", None)

    def run_native(self, options: native.Options, command: list[str], stdout: Callable[[bytes], None]) -> emulated.VmResult:
        self.asked.append(options)
        stdout("".join(self.lines(options.core, json.loads(command[-1]))).encode())
        log = self.folder / "log"
        return emulated.VmResult(0, b"", b"", log, "native", [], "none", options.core, "7.3.4", 0, 1.25)


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


def test_a_whole_benchmark(natives: Natives) -> None:
    chosen = ["--only", "small-4k/xfs", "--only", "depth-1/xfs", "--only", "mixed/xfs", "--drive", "cloud"]
    assert full.main(["--native", "--pairs", "2", *chosen]) == 0
    assert natives.made == [NATIVE, images.LOAD]
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


def test_boots_of_another_kernel_are_not_kept(natives: Natives) -> None:
    one = machine.Native()
    loads: list[catalogue.Load] = one.select(ALL, None)

    def key() -> Any:
        return journal.fingerprint(one, loads, [RUST], 2)

    before = key()
    (natives.folder / "bzImage").write_text("another kernel for QEMU")
    assert key() == before
    one.image.write_text("another kernel")
    assert key() != before
