# SPDX-License-Identifier: GPL-2.0
"""A comparison reports what it can prove, and refuses all else."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from bench_samples import boot, variant
from rust_writeback import kernel, paths, vm
from rust_writeback.bench import catalogue, jobs, results, short
from rust_writeback.errors import Failure

FOLDER = Path(__file__).parents[1] / "fio"
RUST = variant("rust")


def select(place: str, modes: Any, names: Any) -> list[catalogue.Load]:
    """What the catalogue has, from the job files beside these tests."""
    return catalogue_select(place, modes, names, FOLDER)


catalogue_select = catalogue.select
STEPS = results.plan(select("xfs", ["buffered", "dontcache"], catalogue.SHORT))


def test_files_stay_only_for_the_load_that_overwrites_them() -> None:
    assert [(step.load.scenario.name, step.keep) for step in STEPS[:4]] == [
        ("sequential", True),
        ("random", False),
        ("writers-4", False),
        ("writers-32", False),
    ]


def test_a_good_boot_is_accepted() -> None:
    measurements = results.accept(boot("rust", STEPS), STEPS, 1, RUST)
    assert len(measurements) == 8
    dontcache = next(m for m in measurements if (m.scenario, m.mode) == ("writers-32", "dontcache"))
    assert (dontcache.peak_dirty_pages, dontcache.counter_peak, dontcache.counter_after) == (1000, 700, 0)
    assert dontcache.outcome.ios == 32 * 104
    assert dontcache.percentile_ms(50) == pytest.approx(0.1)


def spoiled(what: str) -> list[dict[str, Any]]:
    """A boot with one thing wrong."""
    lines = boot("rust", STEPS)
    buffered, dontcache = lines[1], lines[5]
    if what == "other core":
        lines[0]["core"] = "c"
    elif what == "core changed":
        lines[-1]["core"] = "c"
    elif what == "refused":
        lines.insert(1, {"kind": "refused", "reason": "no drive"})
    elif what == "cut":
        lines.pop()
    elif what == "empty":
        lines.clear()
    elif what == "lost step":
        del lines[3]
    elif what == "counter still":
        dontcache["samples"] = [[0.0, *[0] * 9], [0.1, 900, *[0] * 8]]
        dontcache["dontcache_rounds"] = {"rounds": 0, "most_pages": 0}
    elif what == "counter moved":
        buffered["samples"][1][3] = 1
    elif what == "flusher ran":
        buffered["dontcache_rounds"] = {"rounds": 1, "most_pages": 4}
    elif what == "no samples":
        dontcache["samples"] = []
    elif what == "fio failed":
        buffered["status"] = 1
    elif what == "too few files":
        lines[4]["cached_after"]["files"] = 31
    elif what == "memory":
        lines[0]["memory"] = 1 << 30
    return lines


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("other core", "the active core was c"),
        ("core changed", "the active core was c"),
        ("refused", "no drive"),
        ("cut", "did not come to the end"),
        ("empty", "did not come to the end"),
        ("lost step", "did not run the scenarios"),
        ("counter still", "never moved"),
        ("counter moved", "moved without DONTCACHE"),
        ("flusher ran", "moved without DONTCACHE"),
        ("no samples", "nothing was sampled"),
        ("fio failed", "fio ended with status 1"),
        ("too few files", "31 files of 32"),
        ("memory", "fits into the guest's memory"),
    ],
)
def test_what_proves_nothing_is_refused(what: str, words: str) -> None:
    with pytest.raises(Failure, match=words) as caught:
        results.accept(spoiled(what), STEPS, 2, RUST)
    assert "\n" not in str(caught.value)


def test_a_round_of_the_flusher_proves_what_the_samples_missed() -> None:
    lines = boot("rust", STEPS)
    lines[5]["samples"] = [[0.0, *[0] * 9], [0.1, 900, *[0] * 8]]
    lines[5]["dontcache_rounds"] = {"rounds": 1, "most_pages": 800}
    assert results.accept(lines, STEPS, 1, RUST)[4].counter_peak == 800


def test_a_counter_that_is_left_over_is_reported_and_does_not_count_as_movement() -> None:
    lines = boot("c", STEPS)
    for line in lines[1:5]:
        line["counter_before"] = line["counter_at_end"] = [5, 0]
        line["counter_after"] = [7, 0]
        for row in line["samples"]:
            row[3] = 5
    measurements = results.accept(lines, STEPS, 1, variant("c"))
    assert measurements[0].counter_after == 2


def test_a_line_that_is_cut_ends_what_is_believed() -> None:
    output = b'{"kind": "guest"}\n{"kind": "st'
    assert results.read_lines(output) == [{"kind": "guest"}]


def whole_comparison(monkeypatch: pytest.MonkeyPatch, folder: Path, arguments: list[str], core_of: Any = None) -> list[str]:
    """Run short.main with boots that are made up; the cores in the order in which they were booted."""
    order: list[str] = []

    def run(options: vm.VmOptions, command: list[str], stdout: Any) -> vm.VmResult:
        order.append(options.core)
        plan = json.loads(command[-1])
        loads = {(load.scenario.name, load.mode): load for load in select("xfs", catalogue.ALL_MODES, catalogue.SHORT)}
        steps = [results.Step(loads[step["scenario"], step["mode"]], step["keep"]) for step in plan["steps"]]
        core = core_of(options.core) if core_of else options.core
        speed = 1.0 + 0.01 * len(order) + (0.5 if core == "rust" else 0)
        stdout("".join(json.dumps(line) + "\n" for line in boot(core, steps, speed)).encode())
        return vm.VmResult(0, b"", b"", folder / "log", "tcg", ["qemu"], "10.0", options.core, "7.3.4", 0, False, 5.0)

    monkeypatch.setattr(vm, "run", run)
    monkeypatch.setattr(jobs, "require_uncached", lambda: "fio-3.39")
    monkeypatch.setattr(catalogue, "select", select)
    monkeypatch.setattr(kernel, "ensure", lambda: None)
    monkeypatch.setattr(paths, "PROJECT", folder)
    assert short.main(["--report", str(folder / "report"), *arguments]) == 0
    return order


def test_the_cores_take_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert whole_comparison(monkeypatch, tmp_path, []) == ["c", "rust"] * 3
    printed = capsys.readouterr().out
    for word in ("sequential", "random", "writers-4", "writers-32", "dontcache", "Rust/C", "MB/s", "p99.9"):
        assert word in printed
    document = json.loads((tmp_path / "report" / "results.json").read_text())
    assert len(document["boots"]) == 6
    assert len(document["measurements"]) == 6 * 8 + 2 * 4
    assert {m["mode"] for m in document["measurements"] if m["pair"] > 1} == {"buffered", "dontcache"}
    assert len(list((tmp_path / "report" / "raw").iterdir())) == 6


def test_a_boot_of_the_wrong_core_leaves_no_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="the active core was c"):
        whole_comparison(monkeypatch, tmp_path, [], core_of=lambda core: "c")
    assert not (tmp_path / "report" / "index.html").exists()


def test_more_memory_than_data_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="fits into 256M of memory"):
        whole_comparison(monkeypatch, tmp_path, ["--mem", "256M"])


sys.path.insert(0, str(Path(__file__).parents[1] / "guest"))

from bench import kernel as files  # noqa: E402
from bench import pages, sampler, usage  # noqa: E402


def test_the_driver_reads_the_counter_of_its_own_bdi() -> None:
    text = b"7:0 1 2\n259:1 30 40\n259:10 5 6\n"
    assert files.counter(text, b"259:1") == (30, 40)
    with pytest.raises(files.Refused, match="no line for 259:2"):
        files.counter(text, b"259:2")


def test_the_driver_reads_one_value_of_vmstat() -> None:
    text = b"nr_free_pages 9\nnr_dirty_threshold 7\nnr_dirty 42\nnr_writeback_temp 1\nnr_writeback 3\n"
    assert files.vmstat(text, b"nr_dirty") == 42
    assert files.vmstat(text, b"nr_writeback") == 3


def test_the_driver_reads_what_a_device_has_done() -> None:
    stat = b"  10 0 80 3  7 2 4096 9  0 5 6 1 0 8 2 0 0\n"
    assert files.transferred(stat) == {"read": 80 * 512, "written": 4096 * 512, "writes": 7}


def test_the_driver_counts_context_switches() -> None:
    assert files.context_switches(b"cpu 1 2\nintr 5 6\nctxt 1234\nbtime 5\n") == 1234


def test_the_driver_reads_the_clocks_of_other_processes() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            first = usage.cpu_microseconds(busy.pid)
            time.sleep(0.2)
            second = usage.cpu_microseconds(busy.pid)
        finally:
            busy.kill()
    assert first is not None and second is not None
    assert 1_000 < second - first < 2_000_000
    assert usage.cpu_microseconds(busy.pid) is None


class Kworkers:
    """Processes that are made up, with clocks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder
        self.clocks: dict[int, int | None] = {}
        monkeypatch.setattr(usage, "PROC", str(folder))
        monkeypatch.setattr(usage, "cpu_microseconds", lambda process: self.clocks[process])
        (folder / "cpuinfo").touch()

    def start(self, process: int, name: str) -> None:
        (self.folder / str(process)).mkdir()
        (self.folder / str(process) / "comm").write_text(f"{name}\n")
        self.clocks[process] = 0


def test_workers_are_found_among_others_and_keep_what_they_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Kworkers(monkeypatch, tmp_path)
    machine.start(9, "kworker/u8:3-flush-259:0")
    machine.start(10, "fio")
    workers = usage.Workers()
    assert workers.spent == {9: 0}
    machine.start(11, "kworker/0:1H")
    machine.clocks |= {9: 700, 11: 30}
    workers.update()
    assert workers.spent == {9: 700}
    machine.clocks[9] = None
    workers.find()
    assert workers.spent == {9: 700, 11: 30}


def test_a_worker_that_was_not_there_began_at_nothing() -> None:
    device = {"read": 0, "written": 0, "writes": 0}
    before = usage.Usage(10, 7, {1: 50, 2: 7}, device)
    after = usage.Usage(25, 9, {1: 60, 3: 5}, {"read": 1, "written": 2, "writes": 3})
    found = after.since(before)
    assert (found["context_switches"], found["worker_seconds"]) == (15, 15e-6)
    assert found["load_seconds"] == 2e-6
    assert (found["device_read"], found["device_written"], found["device_writes"]) == (1, 2, 3)
    assert "worker_seconds" not in usage.Usage(25, 9, {}, device).since(usage.Usage(10, 7, {}, device))


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> sampler.Sampler:
    """A sampler of a machine without our core, whose only worker is made up."""
    machine = Kworkers(monkeypatch, tmp_path)
    machine.start(9, "kworker/u8:3-flush-259:0")
    clock = iter([100, 350, None])
    monkeypatch.setattr(sampler, "DEBUGFS", str(tmp_path))
    monkeypatch.setattr(sampler, "cpu_microseconds", lambda process: next(clock))
    found = sampler.Sampler(b"0:0", 0.01)
    monkeypatch.setattr(found, "join", lambda: None)  # it does not run: samples are taken by hand
    times = itertools.count(40, 10)
    monkeypatch.setattr(usage, "cpu_microseconds", lambda process: next(times))
    return found


def test_switches_and_cpu_time_are_sampled_from_the_first_row_on(quiet: sampler.Sampler) -> None:
    quiet.sample()
    quiet.watch(10)
    for _ in range(3):
        quiet.sample()
    rows = quiet.stop()
    assert {len(row) for row in rows} == {results.WORKER_CPU + 1}
    assert [row[results.JOB_CPU] for row in rows] == [0, 100, 350, 350]
    assert [row[results.WORKER_CPU] for row in rows] == [0, 10, 20, 30]
    switches = [row[results.SWITCHES] for row in rows]
    assert switches[0] == 0 and switches == sorted(switches)


def test_looking_around_leaves_no_gap(quiet: sampler.Sampler) -> None:
    quiet.cost = quiet.interval * sampler.SHARE_OF_TIME / 2
    quiet.looking = quiet.cost * sampler.LOOK_AROUND
    assert quiet.rest() == pytest.approx(quiet.interval)
    quiet.looking *= 2
    assert quiet.rest() == pytest.approx(1.5 * quiet.interval)
    quiet.look_around()
    assert quiet.looking < 1
    quiet.stop()


def test_the_driver_counts_cached_pages(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(3 * 4096 + 1))
    try:
        found = pages.cached_pages([str(file)])
    except Exception as error:
        pytest.skip(f"this kernel has no cachestat: {error}")
    assert (found["cache"], found["files"]) == (4, 1)


def test_no_pairs_are_refused() -> None:
    with pytest.raises(Failure, match="--pairs"):
        short.parse(["--pairs", "0"])
