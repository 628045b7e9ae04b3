# SPDX-License-Identifier: GPL-2.0
"""The benchmark in user-mode Linux: its drives, what it boots, and what is known of a boot."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from bench_samples import LOADS, Guests
from rust_writeback.build import kernel
from rust_writeback.build.variants import NATIVE, Variant
from rust_writeback.vm import images, native
from rust_writeback.vm.emulated import VmResult
from rust_writeback.bench import drives, full
from rust_writeback.bench import native as machine
from rust_writeback.errors import Failure

ALL = list(LOADS.values())


class Natives(Guests):
    """Boots of the native machine that are made up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        super().__init__(monkeypatch, folder)
        self.asked: list[native.Options] = []
        self.made: list[Variant | Path] = []
        (folder / "linux-native").write_text("a kernel")
        monkeypatch.setattr(native, "run", self.run_native)
        monkeypatch.setattr(machine.Native, "image", folder / "linux-native")
        monkeypatch.setattr(kernel, "ensure", self.made.append)
        monkeypatch.setattr(images, "ensure_program", lambda source, program: self.made.append(program))

    def run_native(self, options: native.Options, command: list[str], stdout: Callable[[bytes], None]) -> VmResult:
        self.asked.append(options)
        return self.run(options, command, stdout)


def test_all_loads_are_on_a_drive_in_memory() -> None:
    chosen = machine.Native().select(ALL, None)
    assert drives.FAST.in_memory and chosen == [replace(load, drive=drives.FAST) for load in ALL if load.place != "nfs"]
    with pytest.raises(Failure, match="the native machine has only the drive fast"):
        machine.Native().select(ALL, drives.STREAM)


def test_a_whole_benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    natives = Natives(monkeypatch, tmp_path)
    chosen = ["--only", "small-4k/xfs", "--only", "depth-1/xfs", "--only", "mixed/xfs"]
    assert full.main(["--native", "--pairs", "1", *chosen]) == 0
    assert natives.made == [NATIVE, images.LOAD]
    # Two sizes of memory: two boots of each core.
    assert natives.booted == [("c", "xfs", 6), ("rust", "xfs", 6), ("c", "xfs", 1), ("rust", "xfs", 1)]
    sizes = {int(options.mem.removesuffix("M")) - (1280 + 1280 // 16) for options in natives.asked}
    assert sizes == {1024, 192} and {options.cpus for options in natives.asked} == {1}
    assert natives.plans[0]["drive"]["nanoseconds"] == 20_000 and natives.plans[0]["interval"] == 0.02
    setup = natives.document("native")["setup"]
    assert setup["accelerator"] == "native (user-mode Linux)"
    assert setup["drives"] == "fast (20 us a request)"
    assert setup["command"] == f"python3 -m rust_writeback bench --native --pairs 1 {' '.join(chosen)}"
