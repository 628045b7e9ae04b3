# SPDX-License-Identifier: GPL-2.0
"""The benchmark on real hardware leaves nothing behind, touches nothing else, and says why it will not run."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_samples import DURABLE, FOLDER, GUEST, HANDED_OVER, LOADS, round_on_hardware, variant
from rust_writeback import paths
from rust_writeback.vm import images
from rust_writeback.bench import boots, catalogue, compare, hardware, jobs, plots, results, target
from rust_writeback.errors import Failure
from rust_writeback.progress import Bar

ENTER = paths.TOOLS / "enter"
KERNEL = variant("kernel")


def wait(condition: Callable[[], object], seconds: float = 20) -> None:
    """Until it is so, or the test has failed."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder that is not in /tmp, which enter hides, and has real files."""
    paths.BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.BUILD, prefix="test-target.") as folder:
        yield Path(folder)


class Entered:
    """enter with a build root that is the one we are in, and a folder to be measured with somebody's file in it."""

    def __init__(self, folder: Path) -> None:
        self.target = folder / "drive"
        self.target.mkdir()
        (self.target / "somebody's").write_text("data")
        self.bin, self.mirror = folder / "bin", folder / "mirror"
        (self.mirror / "dists/trixie").mkdir(parents=True)
        (self.mirror / "dists/trixie/Release").touch()
        self.bin.mkdir()
        self.cache = folder / "cache"
        mmdebstrap = self.bin / "mmdebstrap"
        mmdebstrap.write_text('#!/bin/sh\nfor word; do case $word in */root-*) ln -s / "$word" ;; esac; done\n')
        mmdebstrap.chmod(0o755)

    def start(self, *command: str, before: str = "") -> subprocess.Popen[str]:
        settings = {
            "PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "XDG_CACHE_HOME": str(self.cache),
            "DEBIAN_MIRROR": f"file://{self.mirror}",
        }
        script = f'{before} exec "$@"'
        return subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script, "enter", ENTER, "--target", self.target, *command],
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str, before: str = "") -> tuple[int, str, str]:
        process = self.start(*command, before=before)
        output, complaint = process.communicate(timeout=60)
        return process.returncode, output, complaint.splitlines()[-1] if complaint else ""

    def left(self) -> list[str]:
        return sorted(path.name for path in self.target.iterdir())


@pytest.fixture
def entered(disk: Path) -> Entered:
    return Entered(disk)


@pytest.mark.parametrize("status", [0, 3])
def test_the_folder_is_fresh_and_gone_afterwards(entered: Entered, status: int) -> None:
    script = "ls -A /share; stat -c %a /share; mkdir /share/d; echo >/share/d/file; echo $TARGET $TARGET_NAME;"
    script += f"exit {status}"
    code, output, _ = entered.run("sh", "-c", script)
    assert (code, output.split()) == (status, ["700", "/share", str(entered.target)])
    assert entered.left() == ["somebody's"]


def test_the_folder_is_where_it_says(entered: Entered) -> None:
    process = entered.start("sh", "-c", "echo >/share/started; sleep 4243")
    wait(lambda: list(entered.target.glob("rust-writeback-bench.??????/started")))
    process.terminate()
    process.communicate(timeout=20)
    assert entered.left() == ["somebody's"]


TIDY = """
import signal, time
def interrupt(*_): raise KeyboardInterrupt
signal.signal(signal.SIGTERM, interrupt)
signal.signal(signal.SIGINT, interrupt)
try:
    open("/share/started", "w").close()
    while True: open(f"/share/{time.monotonic_ns()}", "w").close()
except KeyboardInterrupt:
    print("tidied up", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_can_tidy_up_before_the_folder_goes(entered: Entered, number: signal.Signals) -> None:
    process = entered.start("python3", "-c", TIDY)
    wait(lambda: list(entered.target.glob("*/started")))
    process.send_signal(number)
    output, _ = process.communicate(timeout=20)
    assert output == "tidied up\n"
    assert entered.left() == ["somebody's"]


def test_a_command_that_will_not_end_is_killed(entered: Entered) -> None:
    script = "trap '' INT TERM; echo >/share/started; while :; do echo >/share/$(date +%N); done"
    process = entered.start("sh", "-c", script)
    wait(lambda: list(entered.target.glob("*/started")))
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert 4 < time.monotonic() - begin < 15
    assert (process.returncode != 0, entered.left()) == (True, ["somebody's"])


def test_targets_that_cannot_be(entered: Entered, disk: Path) -> None:
    place = entered.target
    cases = {
        "does not exist; name a folder": disk / "nowhere",
        "is neither a folder nor a block device": place / "somebody's",
        "neither a folder nor": Path("/dev/null"),
    }
    for words, entered.target in cases.items():
        status, _, complaint = entered.run("true")
        assert (status, complaint.startswith(f"error: TARGET={entered.target} ")) == (1, True)
        assert words in complaint


def test_a_read_only_file_system_is_told(entered: Entered) -> None:
    before = f"mount --bind '{entered.target}' '{entered.target}'; mount -o remount,bind,ro '{entered.target}';"
    status, _, complaint = entered.run("true", before=before)
    assert status == 1
    assert f"nothing can be written to TARGET={entered.target} (Read-only file system); name a folder" in complaint
    assert entered.left() == ["somebody's"]


def plan(folder: Path, *options: str) -> dict[str, Any]:
    """A tiny buffered load in a folder: any kernel with io_uring runs it."""
    text = "[global]\nioengine=io_uring\nclocksource=${BENCH_CLOCK}\n[sequential]\nfilename=${BENCH_FILE}\n"
    text += "\n".join(["rw=write", "bs=64k", *options])
    step: dict[str, Any] = {"scenario": "sequential", "mode": "buffered", "text": text, "environment": {}, "needs": {}}
    step |= {"command": [], "jobs": 1, "keep": False, "touched": 0.0, "sysctls": {}}
    where = {"file_system": "ext4", "directory": str(folder)}
    return {"steps": [step], "interval": 0.1, "machine": {"seconds": 60}, **where}


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver of this checkout, on a machine that can run it."""
    monkeypatch.setattr(boots, "DRIVER", GUEST)
    monkeypatch.setattr(images, "ensure_load", lambda: None)
    if not shutil.which("fio") or target.io_uring_error():
        pytest.skip("no fio or no io_uring here")


def test_the_driver_runs_on_a_machine(disk: Path, driver: None) -> None:
    (disk / "fresh").mkdir()
    with Bar("a load", 3) as bar:
        status, output, said = hardware.run_driver(plan(disk / "fresh", "size=1m", "startdelay=1"), bar)
    lines = results.read_lines(output)
    assert (status, [line["kind"] for line in lines]) == (0, ["guest", "step", "end"]), said
    assert lines[1]["dontcache_rounds"] is None
    assert lines[1]["cached_after"]["by_file"] == {"large.data": 256}
    assert lines[1]["used"]["context_switches"] > 0 and lines[1]["used"]["load_seconds"] > 0
    assert list(disk.rglob("*")) == [disk / "fresh"]


def test_the_driver_says_from_when_on_all_was_durable(disk: Path, driver: None) -> None:
    """Of two jobs, the second of which begins late; fio itself has more to do afterwards."""
    (disk / "fresh").mkdir()
    todo = plan(disk / "fresh", "size=1m", "rate=2m", "[late]", "startdelay=1", "filename=${BENCH_DIRECTORY}/late")
    todo["steps"][0]["text"] += "\nrw=write\nbs=64k\nsize=2m\n"
    todo["steps"][0]["jobs"] = 2
    with Bar("a load", 3) as bar:
        _, output, said = hardware.run_driver(todo, bar)
    (step,) = (line for line in results.read_lines(output) if line["kind"] == "step")
    found = json.loads(step["fio"][step["fio"].index("{\n") :])["jobs"]
    assert len(found) == 2, said
    ended = max(job["job_start"] + job["write"]["runtime"] for job in found)
    assert ended - jobs.CLOCKS_MS <= step["sync_began_ms"] < step["durable_at_ms"] < ended + 5000
    assert step["cached_after"]["by_file"].keys() == {"large.data", "late"}


def test_the_driver_runs_a_program_of_our_own(disk: Path, driver: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the files that it needs, and the place of its files in its words."""
    folder = disk / "fresh"
    folder.mkdir()
    program = disk / "load"
    program.write_text(f"#!/bin/sh\necho $*\nstat -c %s $2/reader.0\ntouch {folder}/table.0.0\n")
    program.chmod(0o755)
    monkeypatch.setattr(images, "LOAD", program)
    todo = plan(folder)
    todo["steps"][0] |= {"command": ["load", "shape", "${BENCH_DIRECTORY}", "buffered"], "needs": {"reader.0": 3 << 20}}
    with Bar("a load", 3) as bar:
        _, output, said = hardware.run_driver(todo, bar)
    (step,) = (line for line in results.read_lines(output) if line["kind"] == "step")
    assert step["fio"].splitlines() == [f"shape {folder} buffered", str(3 << 20)], said
    assert step["cached_after"]["by_file"].keys() == {"reader.0", "table.0.0"}
    assert list(folder.iterdir()) == []


def test_files_are_laid_out_whatever_fio_says_of_it(disk: Path, driver: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """exitall has fio end by a signal as soon as one job has nothing to do."""
    folder = disk / "fresh"
    folder.mkdir()
    fio = disk / "fio"
    status = 'status=$?\ncase $1 in --create_only=1) exit 128 ;; esac\nexit $status'
    fio.write_text(f'#!/bin/sh\n{shutil.which("fio")} "$@"\n{status}\n')
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{disk}:{os.environ['PATH']}")
    for size, kinds in ((1 << 20, ["guest", "step", "end"]), (2 << 20, ["guest", "refused", "end"])):
        todo = plan(folder, "size=1m", "overwrite=1")
        todo["steps"][0]["needs"] = {"large.data": size}
        with Bar("a load", 3) as bar:
            _, output, said = hardware.run_driver(todo, bar)
        assert [line["kind"] for line in results.read_lines(output)] == kinds, said


def test_an_interrupted_driver_removes_its_files(disk: Path, driver: None) -> None:
    folder = disk / "fresh"
    folder.mkdir()
    command = ["python3", "-B", "-m", "bench", results.to_text(plan(folder, "size=64m", "rate=512k"))]
    with subprocess.Popen(command, cwd=GUEST, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait(lambda: (folder / "large.data").exists())
        process.send_signal(signal.SIGINT)
        assert process.wait(20) != 0
    assert list(folder.iterdir()) == []


def test_the_driver_says_which_core_runs(disk: Path, driver: None, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, debugfs = disk / "fresh", disk / "debugfs"
    for path in (folder, debugfs):
        path.mkdir()
    for name, text in {"core": "rust\n", "dontcache_dirty": ""}.items():
        (debugfs / name).write_text(text)
    monkeypatch.setenv("BENCH_DEBUGFS", str(debugfs))
    with Bar("a load", 3) as bar:
        status, output, said = hardware.run_driver(plan(folder, "size=1m"), bar)
    first, *_, last = results.read_lines(output)
    assert (status, first["core"], last["core"]) == (0, "rust", "rust"), said


def test_ctrl_c_reaches_the_driver(disk: Path, driver: None, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = disk / "fresh"
    folder.mkdir()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with Bar("a load", 3) as bar, pytest.raises(KeyboardInterrupt):
        monkeypatch.setattr(bar, "advance", interrupt)  # comes with the driver's first line
        hardware.run_driver(plan(folder, "size=64m", "rate=512k"), bar)
    assert list(folder.iterdir()) == []


def test_a_folder_without_dontcache_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "pwritev", refuse)
    monkeypatch.setattr(target, "io_uring_error", lambda: 0)
    where = target.Target(tmp_path, "/mnt/here", "tmpfs")
    of_tmpfs = r"/mnt/here \(tmpfs\) has no DONTCACHE on Linux 7.3.4; name a folder"
    for release, words in (("7.3.4", of_tmpfs), ("6.1.0", "boot 6.14")):
        monkeypatch.setattr(platform, "release", lambda release=release: release)
        with pytest.raises(Failure, match=words):
            where.check(True)
    where.check(False)
    assert list(tmp_path.iterdir()) == []


def test_a_load_that_finds_no_dontcache_is_named_and_leaves_nothing(tmp_path: Path, driver: None) -> None:
    """On the tmpfs that the build root has for /tmp: a real file system without it."""
    found = target.file_system(tmp_path, Path("/proc/self/mountinfo").read_text())
    if found != "tmpfs":
        pytest.skip(f"{tmp_path} is in a {found}")
    job, folder = tmp_path / "sequential.fio", tmp_path / "fresh"
    folder.mkdir()
    job.write_text((FOLDER / "sequential.fio").read_text().replace("size=208m", "size=4m\nrate=8m"))
    like = LOADS["sequential/xfs/buffered"]
    loads = [replace(like, scenario=jobs.read(job), mode=mode, place=found) for mode in ("dontcache", "buffered")]
    planned = results.plan(loads)
    todo = plan(folder) | {"steps": [step.plan() for step in planned]}
    with Bar("loads", 4) as bar:
        _, output, said = hardware.run_driver(todo, bar)
    lines = results.read_lines(output)
    assert [line["kind"] for line in lines] == ["guest", "step", "step", "end"], said
    lines[2]["samples"] = lines[2]["samples"] or [[0.0] * 8]  # it may be over before the first
    sifted = results.sift(lines, planned, 1, KERNEL)
    told = "sequential, dontcache, tmpfs: fio reports error 95 in a job (EOPNOTSUPP: there is no DONTCACHE here"
    assert [problem.startswith(told) for problem in sifted.problems] == [True], sifted.problems
    assert [m.mode for m in sifted.measurements] == ["buffered"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("error", "words"), [(errno.ENOSYS, "has no io_uring"), (errno.EPERM, "io_uring_disabled")])
def test_a_kernel_without_io_uring_is_told(
    error: int, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(target, "io_uring_error", lambda: error)
    with pytest.raises(Failure, match=words):
        target.Target(tmp_path, "/mnt/here", "xfs").check(True)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> target.Target:
    """A file that passes for a block device with a number of its own."""
    path = tmp_path / "disk"
    path.write_bytes(bytes(8192))
    monkeypatch.setattr(stat, "S_ISBLK", lambda mode: True)
    monkeypatch.setattr(target, "SYS", tmp_path / "sys")
    monkeypatch.setattr(target, "io_uring_error", lambda: 0)
    folder = tmp_path / "sys" / "0:0"
    (folder / "holders").mkdir(parents=True)
    (folder / "ro").write_text("0\n")
    return target.find(True, {"TARGET": str(path)})


def test_a_device_is_given_away_in_so_many_words(device: target.Target) -> None:
    assert device.place == catalogue.BARE
    with pytest.raises(Failure, match="whose data would be lost; to allow that, give DESTRUCTIVE=1"):
        target.find(False, {"TARGET": str(device.path)})


@pytest.mark.parametrize(
    ("holder", "words"),
    [("", "mounted, swapped to, or has a partition that is"), ("sda1/holders/dm-3", "held by dm-3")],
)
def test_a_device_in_use_is_refused(
    device: target.Target, monkeypatch: pytest.MonkeyPatch, holder: str, words: str
) -> None:
    asked = []

    def busy(path: Path, flags: int) -> int:
        asked.append(flags)
        raise OSError(errno.EBUSY, "busy")

    if holder:
        (device.sys / holder).mkdir(parents=True)
    monkeypatch.setattr(os, "open", busy)
    with pytest.raises(Failure, match=words):
        device.check(True)
    assert asked[0] & os.O_EXCL


def test_a_read_only_device_is_refused(device: target.Target) -> None:
    (device.sys / "ro").write_text("1\n")
    with pytest.raises(Failure, match="is read-only"):
        device.check(True)


def test_too_little_room_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    where = target.Target(tmp_path, "/mnt/here", "xfs")
    planned = results.plan([LOADS["sequential/xfs/buffered"], LOADS["writers-4/xfs/buffered"]])
    for room, fits in ((1 << 30, True), ((1 << 30) - 1, False)):
        monkeypatch.setattr(target.Target, "room", lambda self, room=room: room)
        with contextlib.nullcontext() if fits else pytest.raises(Failure, match="1 MB|0 MB are missing; free them"):
            where.check_room(planned)


def test_sizes_are_multiplied_and_nothing_else() -> None:
    text = "; size=1\nbs=64k\nsize=6656k\nio_size=48m\nrandseed=20260101\nnumber_ios=4000\nfiles=6\nfile_size=8m\n"
    assert jobs.scaled(text, 3) == (
        "; size=1\nbs=64k\nsize=19968k\nio_size=144m\nrandseed=20260101\nnumber_ios=12000\nfiles=18\nfile_size=8m\n"
    )
    for name in catalogue.NAMES:
        once, thrice = (jobs.read(jobs.find(name, FOLDER), factor) for factor in (1, 3))
        # Tables of a store are more, not larger: what is read of it stays.
        read = sum(once.needs.values()) if name == "compaction" else 0
        assert thrice.footprint == pytest.approx(3 * (once.footprint - read) + read, rel=0.01)
        assert thrice.written == pytest.approx(3 * once.written, rel=0.01)
        assert thrice.paced_seconds == pytest.approx(3 * once.paced_seconds)
        assert bool(thrice.program) == bool(once.program)
    tree = jobs.read(jobs.find("tree", FOLDER), 3)
    assert tree.command("buffered")[3] == str(tree.files) == "13860"


def test_the_file_system_is_the_innermost_mount() -> None:
    info = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /mnt/my\\040disk rw shared:1 - xfs /dev/sda2 rw\n"
    info += "3 1 0:5 / /mn rw - tmpfs x rw\n"
    assert target.file_system(Path("/mnt/my disk/bench"), info) == "xfs"
    assert target.file_system(Path("/mnt/other"), info) == "ext4"


class Rounds:
    """Rounds on a machine that is made up: what each says, and how it may go wrong."""

    draws = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder, self.count = folder, 0
        self.core = "kernel"
        self.planned: list[list[str]] = []
        self.spoil: Callable[[list[dict[str, Any]]], None] = lambda lines: None
        monkeypatch.setenv("TARGET", str(folder))
        monkeypatch.setenv("TARGET_NAME", "/mnt/here")
        monkeypatch.setattr(paths, "PROJECT", folder)
        monkeypatch.setattr(paths, "BUILD", folder)
        monkeypatch.setattr(jobs, "FOLDER", FOLDER)
        monkeypatch.setattr(jobs, "require_uncached", lambda: "fio-3.39")
        monkeypatch.setattr(boots, "DRIVER", GUEST)
        monkeypatch.setattr(target, "DEBUGFS", folder / "no-core")
        monkeypatch.setattr(target, "file_system", lambda *_: "xfs")
        monkeypatch.setattr(target.Target, "check", lambda self, dontcache: None)
        monkeypatch.setattr(target.Target, "room", lambda self: 1 << 40)
        monkeypatch.setattr(target.Target, "rate", lambda self: 1e9)
        monkeypatch.setattr(target, "REPORT", folder / "report")
        monkeypatch.setattr(hardware, "run_driver", self.run)
        if not self.draws:
            monkeypatch.setattr(plots, "draw", lambda *_: {})

    def run(self, plan: dict[str, Any], bar: Bar) -> tuple[int, bytes, str]:
        self.count += 1
        self.place = plan["file_system"]
        self.where = plan.get("directory"), plan.get("device")
        steps = []
        for step in plan["steps"]:
            (load,) = catalogue.select(self.place, [step["mode"]], [step["scenario"]], FOLDER, 2)
            steps.append(results.Step(load, step["keep"]))
        self.planned.append([f"{step.load.scenario.name}/{step.load.mode}" for step in steps])
        lines = round_on_hardware(steps)
        lines[0]["core"] = lines[-1]["core"] = self.core
        for line, step in zip(lines[1:-1], steps, strict=True):
            if step.load.mode == "dontcache":
                document = json.loads(line["fio"][line["fio"].index("{") :])
                document["jobs"][0]["write"]["runtime"] += 1
                line["sync_began_ms"] += 1
                line["fio"] = json.dumps(document, indent=1)
        self.spoil(lines)
        return 0, "".join(json.dumps(line) + "\n" for line in lines).encode(), ""

    def bench(self, *arguments: str) -> int:
        return hardware.main(["--size", "2", *arguments])

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "report" / "results.json").read_text())
        return found


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rounds:
    return Rounds(monkeypatch, tmp_path)


def test_modes_are_compared_on_one_kernel(rounds: Rounds, capsys: pytest.CaptureFixture[str]) -> None:
    assert rounds.bench("--only", "sequential", "--only", "mixed", "--pairs", "3") == 0
    assert rounds.count == 3
    document = rounds.document()
    command = "make bench TARGET=/mnt/here SIZE=2 ARGS='--only sequential --only mixed --pairs 3'"
    assert document["setup"]["command"] == command
    assert document["setup"]["variants"] == ["buffered", "dontcache", "direct"]
    figures = next(group["figures"] for group in document["summary"] if group["scenario"] == "sequential")
    assert figures["mb_per_s"]["ratios"].keys() == {"dontcache", "direct"}
    whole, handed_over = figures["mb_per_s"]["buffered"], figures["handed_over"]["buffered"]
    assert whole / handed_over == pytest.approx(HANDED_OVER / DURABLE)
    printed = capsys.readouterr()
    assert "dontcache/buffered over 3 pairs of runs" in printed.out
    markdown = (rounds.folder / "report" / "report.md").read_text()
    assert "| scenario | mode | second half, MB/s | start, MB/s | to durable, MB/s | handed over, MB/s |" in markdown
    assert "QEMU" not in markdown and "boot" not in markdown
    # A row is of what was measured: mixed is run in one mode.
    assert "| mixed: writer | buffered |" not in markdown and "| mixed: writer | dontcache |" in markdown
    # What stands side by side is one load in two modes; there is no core to tell.
    assert "| scenario | buffered, MB/s | DONTCACHE, MB/s | O_DIRECT, MB/s | ratio second half | O_DIRECT ratio |" in markdown
    assert "DONTCACHE beside buffered" in printed.out


def test_modes_are_compared_on_a_core_of_ours_too(rounds: Rounds) -> None:
    """And what another core has measured is not reported as its."""
    rounds.core = "rust"
    target.DEBUGFS.mkdir()
    (target.DEBUGFS / "core").write_text("rust\n")
    assert rounds.bench("--only", "sequential", "--pairs", "3") == 0
    assert rounds.document()["setup"]["core"] == "Rust"
    (group,) = rounds.document()["summary"]
    assert group["figures"]["mb_per_s"]["ratios"].keys() == {"dontcache", "direct"}
    (target.DEBUGFS / "core").write_text("c\n")
    with pytest.raises(Failure, match="nothing could be measured"):
        rounds.bench("--only", "sequential", "--pairs", "1")


def test_what_all_rounds_write_is_told_before_the_first(rounds: Rounds, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of them writes a file in each of three modes."""
    once = 3 * 2 * (1 << 30)
    for pairs, said in ((1, "1 round"), (4, "4 rounds")):
        assert rounds.bench("--only", "sequential", "--pairs", str(pairs)) == 0
        minutes = pairs * (3 * hardware.SETTLE_SECONDS + once / 1e9) / 60
        assert (
            f"3 loads on /mnt/here (xfs): {said}, in all about {minutes:.1f} minutes at 1000 MB/s"
            f" and up to {pairs * once / 1e9:.1f} GB written" in capsys.readouterr().err
        )


def test_files_to_be_read_and_temporary_ones_are_written_too(
    rounds: Rounds, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rounds.bench("--only", "mixed", "--only", "temp-burst/xfs/buffered", "--pairs", "2") == 0
    mixed, temp = (jobs.read(jobs.find(name, FOLDER), 2) for name in ("mixed", "temp-burst"))
    assert mixed.at_most_written == 2 * (208 + 2 * 24 << 20)
    assert temp.at_most_written > 10 * temp.written
    written = 2 * (mixed.at_most_written + temp.at_most_written)
    assert f"up to {written / 1e9:.1f} GB written" in capsys.readouterr().err


def test_two_results_of_a_machine_keep_all_of_their_modes(rounds: Rounds, capsys: pytest.CaptureFixture[str]) -> None:
    assert rounds.bench("--only", "sequential", "--pairs", "2") == 0
    capsys.readouterr()
    assert compare.main([str(rounds.folder / "report")] * 2) == 0
    printed = capsys.readouterr().out
    for word in ("buffered", "direct", "direct/buffered", "dontcache/buffered", "second_half", "cached_after"):
        assert f" {word}" in printed, word


def test_a_device_gets_the_loads_of_devices_and_no_other(
    rounds: Rounds, device: target.Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARGET", str(device.path))
    with pytest.raises(Failure, match="DESTRUCTIVE=1"):
        rounds.bench()
    assert rounds.count == 0
    assert rounds.bench("--destructive", "--pairs", "1") == 0
    assert (rounds.where, rounds.place) == ((None, str(device.path)), "device")
    found = {(m["scenario"], m["mode"]) for m in rounds.document()["measurements"]}
    assert {scenario for scenario, _ in found} == {"device-read", "depth-1"}
    assert rounds.document()["setup"]["command"] == (
        "make bench TARGET=/mnt/here SIZE=2 DESTRUCTIVE=1 ARGS='--pairs 1'"
    )


def test_what_is_not_there_is_left_out_and_said(rounds: Rounds, capsys: pytest.CaptureFixture[str]) -> None:
    only = ("sequential/xfs/*", "memory", "capped")
    rounds.bench("--pairs", "1", *(word for name in only for word in ("--only", name)))
    printed = capsys.readouterr().out
    assert "left out: the counter, after a load and while it runs" in printed
    assert "left out: the load beside a task that uses three quarters of the memory: that is the machine's" in printed
    assert "left out: the load with other limits of dirty memory: these are the machine's own." in printed
    assert "posix_fadvise(DONTNEED)" in printed
    assert rounds.planned == [["sequential/buffered", "sequential/dontcache", "sequential/direct"]]
    markdown = (rounds.folder / "report" / "report.md").read_text()
    table = markdown[: markdown.index("to durable: ")]
    assert "counter" not in table and "CPU of workers" not in table


def test_what_is_not_there_is_not_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Rounds, "draws", True)
    rounds = Rounds(monkeypatch, tmp_path)
    assert rounds.bench("--only", "sequential/xfs/*", "--pairs", "2") == 0
    drawn = {path.stem for path in (rounds.folder / "report").glob("*.svg")}
    assert "counter" not in drawn and drawn > {"dirty", "beside", "ratios"}
    assert "DONTCACHE/buffered" in (rounds.folder / "report" / "beside.svg").read_text()


def test_nothing_left_to_run_is_told(rounds: Rounds) -> None:
    with pytest.raises(Failure, match="nothing is left to run"):
        rounds.bench("--only", "capped")


def fill(lines: list[dict[str, Any]]) -> None:
    """The second load finds the device full."""
    document = json.loads(lines[2]["fio"][lines[2]["fio"].index("{") :])
    document["jobs"][0]["error"] = errno.ENOSPC
    lines[2]["fio"] = json.dumps(document, indent=1)


def keep_all(lines: list[dict[str, Any]]) -> None:
    """What was written with DONTCACHE is in the cache all the same."""
    lines[2]["cached_after"]["by_file"] = {"large.data": (2 << 30) // results.PAGE}


@pytest.mark.parametrize(("spoil", "words"), [(fill, "the device is full"), (keep_all, "nothing proves DONTCACHE")])
def test_what_cannot_be_measured_is_partial_and_not_tried_again(
    rounds: Rounds, capsys: pytest.CaptureFixture[str], spoil: Callable[[list[dict[str, Any]]], None], words: str
) -> None:
    def once(lines: list[dict[str, Any]]) -> None:
        if rounds.count == 1:
            spoil(lines)

    rounds.spoil = once
    assert rounds.bench("--only", "sequential", "--pairs", "3") == 1
    left = ["sequential/buffered", "sequential/direct"]
    assert rounds.planned == [["sequential/buffered", "sequential/dontcache", "sequential/direct"], left[::-1], left]
    printed = capsys.readouterr()
    assert [words in line for line in printed.err.splitlines() if line.startswith("partial: ")] == [True]
    assert any(line.startswith("Given up: sequential/xfs/dontcache. ") for line in rounds.document()["verdicts"])


def test_ordinary_writes_that_leave_nothing_cached_are_refused() -> None:
    planned = results.plan([LOADS["sequential/xfs/buffered"]])
    lines = round_on_hardware(planned)
    (found,) = results.accept(lines, planned, 1, KERNEL)
    assert (found.counter_after, found.counter_peak, found.dontcache_rounds) == (None, None, None)
    lines[1]["cached_after"]["by_file"]["large.data"] = 0
    with pytest.raises(Failure, match="stayed cached without DONTCACHE"):
        results.accept(lines, planned, 1, KERNEL)


def test_direct_writes_that_went_through_the_cache_are_refused() -> None:
    planned = results.plan([LOADS["sequential/xfs/direct"]])
    lines = round_on_hardware(planned)
    results.accept(lines, planned, 1, KERNEL)
    lines[1]["cached_after"]["by_file"]["large.data"] = (1 << 30) // results.PAGE
    with pytest.raises(Failure, match="nothing proves direct I/O"):
        results.accept(lines, planned, 1, KERNEL)


def test_a_file_that_stays_for_the_next_load_is_alone() -> None:
    planned = results.plan([LOADS["noisy/xfs/direct"], LOADS["random/xfs/dontcache"]])
    assert [step.keep for step in planned] == [False, False]


def test_an_interrupted_benchmark_goes_on_and_a_finished_one_starts_anew(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(plan: dict[str, Any], bar: Bar) -> tuple[int, bytes, str]:
        if rounds.count == 2:
            raise KeyboardInterrupt
        return rounds.run(plan, bar)

    monkeypatch.setattr(hardware, "run_driver", interrupt)
    with pytest.raises(KeyboardInterrupt):
        rounds.bench("--only", "sequential", "--pairs", "3")
    monkeypatch.setattr(hardware, "run_driver", rounds.run)
    rounds.bench("--only", "sequential", "--pairs", "3")
    assert rounds.count == 3
    rounds.bench("--only", "sequential", "--pairs", "3")
    assert rounds.count == 6


def test_rounds_keep_their_revision_and_a_mixture_is_told(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(plan: dict[str, Any], bar: Bar) -> tuple[int, bytes, str]:
        if rounds.count == 1:
            raise KeyboardInterrupt
        return rounds.run(plan, bar)

    monkeypatch.setattr(boots, "revision", lambda: "aaaa")
    monkeypatch.setattr(hardware, "run_driver", interrupt)
    with pytest.raises(KeyboardInterrupt):
        rounds.bench("--only", "sequential", "--pairs", "2")
    monkeypatch.setattr(boots, "revision", lambda: "bbbb")
    monkeypatch.setattr(hardware, "run_driver", rounds.run)
    capsys.readouterr()
    rounds.bench("--only", "sequential", "--pairs", "2")
    assert [one["revision"] for one in rounds.document()["boots"]] == ["aaaa", "bbbb"]
    assert rounds.document()["setup"]["revisions"] == ["aaaa", "bbbb"]
    assert (rounds.folder / "report" / "report.md").read_text().startswith("**mixed: ")
    assert capsys.readouterr().out.startswith("mixed: ")


def test_a_driver_that_fails_is_no_success(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "run_driver", lambda plan, bar: (-9, b"", "Killed"))
    with pytest.raises(Failure, match="nothing could be measured"):
        rounds.bench("--only", "sequential", "--pairs", "1")


def test_a_dry_run_runs_nothing(rounds: Rounds, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(rounds.folder.rglob("*"))
    assert rounds.bench("--dry-run", "--only", "sequential") == 0
    assert (rounds.count, sorted(rounds.folder.rglob("*"))) == (0, before)
    assert "sequential/xfs/dontcache: sequential writes of 1 MiB, 2147 MB" in capsys.readouterr().out


@pytest.mark.parametrize("size", ["0", "-1", "1.5", "big", ""])
def test_sizes_that_cannot_be(size: str) -> None:
    with pytest.raises(Failure, match="is not a factor"):
        hardware.parse([f"--size={size}"])


def test_another_core_takes_a_boot() -> None:
    with pytest.raises(Failure, match="unrecognized arguments: --variants c,rust; allowed: "):
        hardware.parse(["--variants", "c,rust"])


def test_a_target_without_enter_is_told() -> None:
    with pytest.raises(Failure, match="make bench TARGET="):
        target.find(False, {})


def test_a_device_is_given_away_by_1_and_nothing_else() -> None:
    with pytest.raises(Failure, match="DESTRUCTIVE=yes is unknown; give DESTRUCTIVE=1, or omit it"):
        hardware.parse(["--destructive=yes"])


def test_a_folder_is_not_given_away(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="DESTRUCTIVE=1 is for a block device, /mnt/here is a folder"):
        target.find(True, {"TARGET": str(tmp_path), "TARGET_NAME": "/mnt/here"})
