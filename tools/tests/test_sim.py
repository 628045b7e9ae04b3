# SPDX-License-Identifier: GPL-2.0
"""The simulation boots what repeats, says that it counted, and notices when something did not repeat."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_samples import FOLDER, LOADS, Guests, boot, steps, whole_matrix
from rust_writeback.build import archive
from rust_writeback.vm import emulated, images
from rust_writeback.bench import compare, drives, full, results, sim
from rust_writeback.errors import Failure

sys.path.insert(0, str(Path(__file__).parents[1] / "guest"))

from bench import drive  # noqa: E402
from bench import kernel as files  # noqa: E402

QUICK = [load.name for load in whole_matrix(sim.QUICK, FOLDER)]
MAKEFILE = Path(__file__).parents[2] / "Makefile"


class Simulations(Guests):
    """Boots that are made up, with the options that they were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        super().__init__(monkeypatch, folder)
        self.asked: list[tuple[emulated.VmOptions, dict[str, Any]]] = []
        root = folder / "guest.cpio"
        root.write_bytes(bytes(64 << 20))
        monkeypatch.setattr(images, "whole_initramfs", lambda arch: root)
        monkeypatch.setattr(images, "ensure", lambda whole: None)

    def run(
        self,
        options: emulated.VmOptions,
        command: list[str],
        stdout: Callable[[bytes], None],
        again: Callable[[emulated.VmFailure], None] | None = None,
    ) -> emulated.VmResult:
        self.asked.append((options, json.loads(command[-1])))
        return super().run(options, command, stdout, again)


@pytest.fixture
def simulations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Simulations:
    return Simulations(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sim=2"], "SIM=2 is unknown; give SIM=1, or omit it"),
        (["--sim", "--quick=yes"], "QUICK=yes is unknown; give QUICK=1, or omit it"),
        (["--quick"], "add SIM=1"),
        (["--repeat"], "add SIM=1"),
        (["--native", "--quick"], "add SIM=1"),
        (["--sim", "--cpus", "0"], "--cpus 0 is not possible; give 1 to 16"),
        (["--cpus", "17"], "--cpus 17 is not possible; give 1 to 16"),
        (["--sim", "--quick", "--only", "depth-1"], "omit QUICK=1 or --only"),
        (["--sim", "--pairs", "0"], "--pairs has to be at least 1"),
    ],
)
def test_what_cannot_be_simulated_is_told_in_a_line(arguments: list[str], words: str) -> None:
    with pytest.raises(Failure, match=words) as caught:
        full.parse(arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("drive", ["cloud", "stream", "bps=1G"])
def test_the_simulation_has_a_drive_of_its_own(simulations: Simulations, drive: str) -> None:
    with pytest.raises(Failure, match=r"the simulation has only the drive fast \(20 us a request\); omit --drive"):
        simulations.bench("--sim", "--only", "depth-1", "--drive", drive)
    assert not simulations.booted
    assert simulations.bench("--sim", "--only", "depth-1/device/dontcache", "--drive", "fast") == 0


def test_make_hands_its_words_on() -> None:
    command = ["make", "-n", "-f", str(MAKEFILE), "bench", "SIM=1", "QUICK=1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=True)
    assert shlex.split(done.stdout.replace("\\\n", ""))[-3:] == ["bench", "--sim=1", "--quick=1"]


def test_every_load_has_a_boot_in_which_nothing_is_the_hosts(simulations: Simulations) -> None:
    assert simulations.bench("--sim", "--quick") == 0
    assert simulations.booted == [(core, name.split("/")[1], 1) for name in QUICK for core in ("c", "rust")]
    for options, plan in simulations.asked:
        options.check()
        assert (options.icount, options.nvme, options.share) == (True, None, None)
        # The memory for the page cache comes on top of what the root and the drive hold.
        assert plan["drive"] == {"megabytes": 512, "nanoseconds": 20000, "depth": 1023, "kilobytes": 512}
        assert 64 + 512 < int(options.mem.removesuffix("M")) - 1024 < 1.1 * (64 + 512)
    assert {boot["drives"] for boot in [simulations.document()["setup"]]} == {"fast (20 us a request)"}


def test_a_load_about_memory_has_little_of_it(simulations: Simulations) -> None:
    assert simulations.bench("--sim", "--only", "mixed/xfs") == 0
    (options, _), *_ = simulations.asked
    assert 64 + 512 < int(options.mem.removesuffix("M")) - 192 < 1.1 * (64 + 512)


def test_the_quick_form_has_what_it_says() -> None:
    loads = ("depth-1/device", "sequential/xfs", "writers-32/xfs")
    assert set(QUICK) == {f"{name}/{mode}" for name in loads for mode in ("buffered", "dontcache")}


def test_what_cannot_be_counted_is_left_out(simulations: Simulations) -> None:
    loads = list(LOADS.values())
    chosen = sim.Simulated().select(loads, None)
    left_out = {load.scenario.name for load in loads} - {load.scenario.name for load in chosen}
    assert left_out == {"noisy", "interleaved", "interleaved-shifted"}
    assert {load.place for load in chosen} == {load.place for load in loads}
    assert {load.drive for load in chosen} == {drives.FAST}
    for wanted in ("noisy/ext4", "interleaved/nfs"):
        with pytest.raises(Failure, match="the simulation cannot run noisy, interleaved"):
            simulations.bench("--sim", "--only", wanted)


def test_a_load_is_the_same_alone_and_with_others(simulations: Simulations) -> None:
    simulations.bench("--sim", "--quick")
    with_others = [plan for _, plan in simulations.asked if plan["steps"][0]["scenario"] == "depth-1"]
    simulations.asked.clear()
    simulations.bench("--sim", "--only", "depth-1/device")
    assert [plan for _, plan in simulations.asked] == with_others


def test_it_says_that_it_counted(simulations: Simulations, capsys: pytest.CaptureFixture[str]) -> None:
    simulations.noise = 0.1
    assert simulations.bench("--sim", "--only", "depth-1/device/dontcache") == 0
    printed = capsys.readouterr()
    assert "counted in instructions, one boot each" in printed.err
    assert "Rust/C, counted, not timed: another boot gives the same digits" in printed.out
    said = printed.out.replace(sim.Words.legend, "")
    assert len(said) < len(printed.out)
    assert "95 %" not in said and "stand" not in said and "one pair" not in said
    document = simulations.document()
    assert document["setup"]["counted"] and document["setup"]["pairs"] == 1
    ratio = document["summary"][0]["figures"]["mb_per_s"]["ratios"]["rust"]
    assert ratio["low"] == ratio["high"] == ratio["estimate"] != 1
    page = (simulations.folder / "bench" / "index.html").read_text()
    assert "Counted, not timed" in page and "only ratios are meaningful" not in page


def test_more_pairs_begin_at_other_moments_and_have_intervals(simulations: Simulations) -> None:
    simulations.noise = 0.4
    assert simulations.bench("--sim", "--only", "depth-1/device/dontcache", "--pairs", "3") == 0
    assert [plan["delay"] for _, plan in simulations.asked] == [n * sim.DELAY for n in (0, 0, 1, 1, 2, 2)]
    ratio = simulations.document()["summary"][0]["figures"]["mb_per_s"]["ratios"]["rust"]
    assert ratio["low"] < ratio["estimate"] < ratio["high"]


def test_work_is_told_for_each_mib_with_as_many_cpus_as_were_asked_for(
    simulations: Simulations, capsys: pytest.CaptureFixture[str]
) -> None:
    load = "depth-1/device/dontcache"
    assert simulations.bench("--sim", "--only", load, "--cpus", "1") == 0
    assert [options.smp for options, _ in simulations.asked] == [1, 1]
    figures = simulations.document()["summary"][0]["figures"]
    megabytes = LOADS[load].moved / 2**20
    assert figures["work"]["rust"] == pytest.approx(1e6 * (0.6 + 0.4) / megabytes)
    assert "1000/MiB" in capsys.readouterr().out
    simulations.bench("--only", load, "--pairs", "1")
    assert "work" not in simulations.document()["summary"][0]["figures"]


def test_two_counted_results_show_what_changed(simulations: Simulations, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--sim", "--only", "depth-1/device/dontcache")
    simulations.bench(*arguments)
    (simulations.folder / "bench").rename(simulations.folder / "a")
    simulations.noise = 0.25
    simulations.booted.clear()
    simulations.bench(*arguments)
    capsys.readouterr()
    folders = [str(simulations.folder / name) for name in ("a", "bench")]
    assert compare.main([*folders, "--figures", "mb_per_s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if " Rust " in line).split()[-2:] == ["+25.0", "%"]
    assert next(line for line in lines if "Rust/C" in line).split()[-3:] == ["1.000", "1.250", "counted"]


def output(speed: float = 1.0) -> bytes:
    """What a boot says."""
    lines = boot("rust", steps("depth-1/device/dontcache"), speed)
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_every_figure_is_compared() -> None:
    assert sim.differences(output(), output()) == []
    (found,) = sim.differences(output(), output().replace(b'"context_switches": 900', b'"context_switches": 901', 1))
    assert found.startswith("depth-1 (line 2), used: ")
    assert [line.partition(":")[0] for line in sim.differences(output(), output(2.0))] == [
        f"depth-1 (line 2), {name}" for name in ("fio", "sync_began_ms", "durable_at_ms")
    ]
    assert sim.differences(output(), output() + b"{}\n") == ["3 lines and 4"]
    assert sim.differences(output(), output().replace(b": ", b":", 1)) == ["the bytes of the output"]


def test_what_does_not_repeat_is_a_failure(simulations: Simulations, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulations.bench("--sim", "--repeat") == 0
    assert [core for core, _, _ in simulations.booted] == ["c", "c", "rust", "rust"]
    assert capsys.readouterr().out.count("the same\n") == 2
    simulations.noise = 0.1
    with pytest.raises(Failure, match=r"two boots gave different figures: depth-1/device/dontcache, rust; the lines"):
        simulations.bench("--sim", "--repeat")
    assert "depth-1/device/dontcache, rust: two boots" in capsys.readouterr().out


def test_boots_that_measured_nothing_do_not_repeat(simulations: Simulations, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(options: emulated.VmOptions, *_: Any, **__: Any) -> emulated.VmResult:
        return emulated.VmResult(0, b"", b"", Path(), "icount", [], "10.0", options.core, "7.3.4", 0, False, 5.0)

    monkeypatch.setattr(emulated, "run", silent)
    with pytest.raises(Failure, match=results.NOT_ENDED):
        simulations.bench("--sim", "--repeat")


def test_a_folder_of_scripts_gets_into_the_guest(tmp_path: Path) -> None:
    for name in ("bench/b.py", "bench/a.py", "bench/notes.txt", "bench/__pycache__/a.pyc"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    found = archive.tree(tmp_path / "bench", "share")
    assert [entry.name for entry in found] == ["share/bench", "share/bench/a.py", "share/bench/b.py"]
    assert [entry.mtime for entry in found] == [archive.EPOCH] * 3


def test_a_kernel_without_null_blk_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(drive, "FOLDER", str(tmp_path / "nullb"))
    with pytest.raises(files.Refused, match="null_blk makes no drive"):
        drive.make(512, 20000)


def test_a_drive_is_made_before_it_gets_its_power(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written: list[str] = []
    monkeypatch.setattr(drive, "FOLDER", str(tmp_path))
    monkeypatch.setattr(drive, "write", lambda path, text: written.append(f"{Path(path).name}={text}"))
    monkeypatch.setattr(drive, "NAME", "no-such-device/at-all")
    (tmp_path / "no-such-device").mkdir()
    with pytest.raises(files.Refused, match="the drive cannot be filled"):
        drive.make(512, 20000, depth=1, kilobytes=128)
    assert written[-1] == "power=1" and {"memory_backed=1", "irqmode=2", "completion_nsec=20000"} < set(written)
    # So many requests at a time, of so many KiB: 256 sectors.
    assert {"hw_queue_depth=1", "max_sectors=256"} < set(written)


def test_the_limit_of_dirty_pages_is_set_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(drive, "read", lambda path: "20")
    monkeypatch.setattr(drive, "write", lambda path, text: written.append(text))
    drive.forget_memory()
    assert written == ["21", "20"]
