# SPDX-License-Identifier: GPL-2.0
"""The benchmark on real hardware leaves nothing behind, touches nothing else, and says why it will not run."""

import contextlib
import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench_samples import DURABLE, HANDED_OVER, LOADS, Guests, accept, round_on_hardware
from rust_writeback.vm import images
from rust_writeback.bench import boots, catalogue, hardware, jobs, results, target
from rust_writeback.errors import Failure
from test_path_enter import Machine, wait

KERNEL = "kernel"


class Entered(Machine):
    """enter with a build root that is the one we are in, and a folder to be measured with somebody's file in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.target = folder / "drive"
        self.target.mkdir()
        (self.target / "somebody's").write_text("data")
        self.mmdebstrap('rmdir "$root"; ln -s / "$root"')

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        return super().start("--target", str(self.target), *command, **environment)

    def left(self) -> list[str]:
        return sorted(path.name for path in self.target.iterdir())


@pytest.fixture
def entered(disk: Path) -> Entered:
    return Entered(disk)


def test_the_folder_is_fresh_and_gone_afterwards(entered: Entered) -> None:
    script = "ls -A /share; stat -c %a /share; mkdir /share/d; echo >/share/d/file; echo $TARGET $TARGET_NAME; exit 3"
    process = entered.start("sh", "-c", script)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output.split()) == (3, ["700", "/share", str(entered.target)])
    assert entered.left() == ["somebody's"]


LOOP = "echo >/share/started; while :; do echo >/share/$(date +%N); done"


@pytest.mark.parametrize(("trap", "said"), [("echo tidied up; exit 0", "tidied up\n"), ("", "")])
def test_a_command_may_tidy_up_or_is_killed_before_the_folder_goes(entered: Entered, trap: str, said: str) -> None:
    process = entered.start("sh", "-c", f"trap '{trap}' INT TERM; {LOOP}")
    wait(lambda: list(entered.target.glob("*/started")))
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=20)
    assert (output, process.returncode == 0) == (said, bool(said))
    assert entered.left() == ["somebody's"]


def plan(folder: Path, *options: str) -> dict[str, Any]:
    """A tiny buffered load in a folder: any kernel with io_uring runs it."""
    text = "[global]\nioengine=io_uring\nclocksource=${BENCH_CLOCK}\n[sequential]\nfilename=${BENCH_FILE}\n"
    text += "\n".join(["rw=write", "bs=64k", *options])
    step: dict[str, Any] = {"name": "sequential", "mode": "buffered", "text": text, "environment": {}, "needs": {}}
    step |= {"command": [], "jobs": 1, "keep": False, "touched": 0.0, "sysctls": {}}
    where = {"file_system": "ext4", "directory": str(folder)}
    return {"steps": [step], "interval": 0.1, "machine": {"seconds": 60}, **where}


@pytest.fixture
def fresh(disk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the driver of this checkout, on a machine that can run it."""
    monkeypatch.setattr(images, "ensure_program", lambda *_: None)
    with contextlib.suppress(Failure):
        target.Target(disk, str(disk), "ext4").check(False)
        (disk / "fresh").mkdir()
        return disk / "fresh"
    pytest.skip("no io_uring here")


def test_the_driver_reports_when_all_data_was_durable(fresh: Path) -> None:
    output = bytearray()
    hardware.run_driver(plan(fresh, "size=1m", "rate=2m"), output.extend)
    guest, step, end = results.read_lines(output)
    assert list(fresh.iterdir()) == []
    assert (guest["kind"], step["kind"], end["kind"], guest["core"]) == ("guest", "step", "end", end["core"])
    (job,) = json.loads(step["fio"][step["fio"].index("{\n") :])["jobs"]
    ended = job["job_start"] + job["write"]["runtime"]
    assert ended - jobs.CLOCKS_MS <= step["sync_began_ms"] < step["durable_at_ms"] < ended + 5000
    assert step["cached_after"] == {"large.data": 256}
    assert step["dontcache_round"] is None and step["used"]["context_switches"] > 0


def test_an_interrupted_driver_removes_its_files(fresh: Path) -> None:
    command = ["python3", "-B", "-m", "bench", json.dumps(plan(fresh, "size=64m", "rate=512k"))]
    with subprocess.Popen(command, cwd=boots.DRIVER, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        wait(lambda: (fresh / "large.data").exists())
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[1] == b"" and process.returncode == 130
    assert list(fresh.iterdir()) == []


def test_a_folder_without_dontcache_is_refused(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a file system that is none of fio's fault: tmpfs never has it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        where = target.Target(Path(folder), "/mnt/here", "tmpfs")
        with pytest.raises(Failure, match=r"fio cannot use /mnt/here \(tmpfs\) on Linux .* not supported.*; loads") as caught:
            where.check(True)
        assert "\n" not in str(caught.value)
        where.check(False)
        assert list(Path(folder).iterdir()) == []


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> target.Target:
    """A file that passes for a block device with a number of its own."""
    path = tmp_path / "disk"
    path.write_bytes(bytes(8192))
    monkeypatch.setattr(stat, "S_ISBLK", lambda mode: True)
    monkeypatch.setattr(target, "SYS", tmp_path / "sys")
    return target.find(True, {"TARGET": str(path)})


def test_a_device_is_given_away_in_so_many_words(device: target.Target) -> None:
    with pytest.raises(Failure, match="whose data would be lost; to allow that, give DESTRUCTIVE=1"):
        target.find(False, {"TARGET": str(device.path)})
    with pytest.raises(Failure, match="DESTRUCTIVE=yes"):
        hardware.parse(["--destructive=yes"])


def test_a_device_in_use_is_refused(device: target.Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(path: Path, flags: int) -> int:
        assert flags & os.O_EXCL
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(os, "open", busy)
    with pytest.raises(Failure, match="must not be mounted, swapped to, held"):
        device.check(True)


def test_too_little_disk_space_is_refused_before_a_load_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    where, loads = target.Target(tmp_path, "/mnt/here", "xfs"), [LOADS["sequential/xfs/buffered"]]
    for free, fits in (((1 << 30) + target.SLACK, True), (1 << 30, False)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        with contextlib.nullcontext() if fits else pytest.raises(Failure, match="free some, or take a smaller SIZE"):
            where.check_room(loads)


def test_sizes_are_multiplied() -> None:
    for name in {entry.name for entry in catalogue.CATALOGUE}:
        once, thrice = (jobs.read(jobs.find(name), factor) for factor in (1, 3))
        assert thrice.written == pytest.approx(3 * once.written, rel=0.01)


class Rounds(Guests):
    """Rounds on a machine that is made up, and what is wrong with the lines of some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        super().__init__(monkeypatch, folder)
        self.spoil: dict[int, Callable[[list[dict[str, Any]]], None]] = {}
        monkeypatch.setenv("TARGET", str(folder))
        monkeypatch.setenv("TARGET_NAME", "/mnt/here")
        monkeypatch.setattr(target, "DEBUGFS", folder / "no-core")
        monkeypatch.setattr(target, "file_system", lambda *_: "xfs")
        monkeypatch.setattr(target.Target, "check", lambda self, dontcache: None)
        monkeypatch.setattr(target.Target, "check_room", lambda self, loads: None)
        monkeypatch.setattr(hardware, "run_driver", self.run_driver)
        monkeypatch.setattr(images, "ensure_program", lambda *_: None)

    def run_driver(self, plan: dict[str, Any], stream: Callable[[bytes], None]) -> None:
        self.plans.append(plan)
        loads = {load.name: load for load in catalogue.select(plan["file_system"], factor=2)}
        lines = round_on_hardware([loads[step["name"]] for step in plan["steps"]])
        if spoil := self.spoil.get(len(self.plans)):
            spoil(lines)
        stream("".join(json.dumps(line) + "\n" for line in lines).encode())

    def bench(self, *arguments: str) -> int:
        return hardware.main(["--size", "2", *arguments])


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rounds:
    return Rounds(monkeypatch, tmp_path)


def test_modes_are_compared_on_one_kernel(rounds: Rounds) -> None:
    only = "--only sequential --only mixed --only memory --only capped --pairs 3"
    assert rounds.bench(*only.split()) == 0
    document = rounds.document("bench-target")
    assert document["setup"]["command"] == f"make bench TARGET=/mnt/here ARGS='--size 2 {only}'"
    assert document["setup"]["variants"] == ["buffered", "dontcache", "direct"]
    figures = next(group["figures"] for group in document["summary"] if group["scenario"] == "sequential")
    assert figures["mb_per_s"]["ratios"].keys() == {"dontcache", "direct"}
    whole, handed_over = figures["mb_per_s"]["buffered"], figures["handed_over"]["buffered"]
    assert whole / handed_over == pytest.approx(HANDED_OVER / DURABLE)
    # What would use most memory of the machine, or change its settings, is left out.
    assert {step["name"].split("/")[0] for plan in rounds.plans for step in plan["steps"]} == {"sequential", "mixed"}


def test_a_device_gets_the_loads_of_devices_and_no_other(
    rounds: Rounds, device: target.Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARGET", str(device.path))
    assert rounds.bench("--destructive", "--pairs", "1") == 0
    (plan,) = rounds.plans
    assert (plan.get("directory"), plan["device"], plan["file_system"]) == (None, str(device.path), "device")
    assert {step["name"].split("/")[0] for step in plan["steps"]} == {"device-read", "depth-1"}


def test_a_refused_load_makes_the_report_partial(rounds: Rounds, capsys: pytest.CaptureFixture[str]) -> None:
    """What was written with DONTCACHE is in the cache all the same, once."""
    rounds.spoil[1] = lambda lines: lines[2]["cached_after"].update({"large.data": (2 << 30) // results.PAGE})
    assert rounds.bench("--only", "sequential", "--pairs", "3") == 1
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("partial: ")]
    assert ["nothing proves DONTCACHE" in line for line in told] == [True]
    # The others of that round are there.
    assert len(rounds.document("bench-target")["measurements"]) == 3 * 3 - 1


@pytest.mark.parametrize(
    ("mode", "cached", "words"),
    [("buffered", 0, "stayed cached without DONTCACHE"), ("direct", (1 << 30) // results.PAGE, "nothing proves direct I/O")],
)
def test_writes_whose_mode_does_not_show_in_the_cache_are_refused(mode: str, cached: int, words: str) -> None:
    planned = catalogue.keeping([LOADS[f"sequential/xfs/{mode}"]])
    lines = round_on_hardware(planned)
    (found,) = accept(lines, planned, 1, KERNEL)
    assert found.counter_after is None
    lines[1]["cached_after"]["large.data"] = cached
    with pytest.raises(Failure, match=words):
        accept(lines, planned, 1, KERNEL)


def test_a_dry_run_runs_nothing(rounds: Rounds) -> None:
    before = sorted(rounds.folder.rglob("*"))
    assert rounds.bench("--dry-run", "--only", "sequential") == 0
    assert not rounds.plans and sorted(rounds.folder.rglob("*")) == before
