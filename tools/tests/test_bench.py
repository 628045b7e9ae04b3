# SPDX-License-Identifier: GPL-2.0
"""The benchmark plans what it says, goes on where it was, stops when it may, and tells what is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench_samples import boot, fio_output, variant
from rust_writeback import kernel, paths, vm
from rust_writeback.bench import boots, catalogue, compare, full, jobs, journal, results, summary, variants
from rust_writeback.errors import Failure

sys.path.insert(0, str(Path(__file__).parents[1] / "guest"))

from bench import counts  # noqa: E402
from bench import kernel as files  # noqa: E402

FOLDER = Path(__file__).parents[1] / "fio"
LOADS = {load.name: load for load in catalogue.matrix(folder=FOLDER)}
RUST = variant("rust")


def steps(*names: str) -> list[results.Step]:
    """A boot's steps of the loads with these names."""
    return results.plan([LOADS[name] for name in names])


def test_every_job_file_is_in_the_catalogue() -> None:
    assert {entry.name for entry in catalogue.CATALOGUE} == {path.stem for path in FOLDER.glob("*.fio")}


def test_every_load_is_larger_than_memory_and_ends() -> None:
    for load in LOADS.values():
        boots.Machine().check([load.scenario])
        assert load.moved > 0, load.name


@pytest.mark.parametrize("load", [load for load in LOADS.values() if load.place == "device"], ids=lambda load: load.name)
def test_what_runs_on_a_device_makes_no_files(load: catalogue.Load) -> None:
    assert load.scenario.files == 1
    assert "${BENCH_DIRECTORY}" not in load.scenario.text
    assert "filename=${BENCH_FILE}" in load.scenario.text.splitlines()


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["mixed"], ["mixed/xfs/dontcache", "mixed/ext4/dontcache"]),
        (["depth-1/device"], ["depth-1/device/buffered", "depth-1/device/dontcache"]),
        (["writers-?/ext4/d*", "device-read/*/buffered"], []),
    ],
)
def test_only_takes_scenarios_places_and_modes(patterns: list[str], names: list[str]) -> None:
    found = [load.name for load in catalogue.matrix(patterns, FOLDER)]
    expected = names or ["writers-4/ext4/dontcache", "writers-4/ext4/direct", "device-read/device/buffered"]
    assert found == expected


def test_only_that_matches_nothing_is_told() -> None:
    with pytest.raises(Failure, match="--only fast matches nothing; names are like sequential/xfs/buffered"):
        catalogue.matrix(["fast"], FOLDER)


@pytest.mark.parametrize("text", ["c", "c,c", "c,rust-fast", "c-inline,rust", ""])
def test_variants_that_cannot_be(text: str) -> None:
    with pytest.raises(Failure, match="--variants"):
        variants.parse(text)


def test_variants_ask_for_a_policy_only_where_it_is_not_the_default() -> None:
    found = variants.parse("c,rust,rust-rate-limited")
    assert [v.wanted_policy for v in found] == ["", "", "rate-limited"]
    assert [variants.title(v.name) for v in found] == ["C", "Rust", "Rust rate-limited"]


def test_a_memory_cgroup_holds_a_quarter_of_what_is_written() -> None:
    load = LOADS["device-write-memcg/device/dontcache"]
    assert load.memory_max * 4 == load.scenario.written == 208 << 20
    assert steps(load.name)[0].plan(RUST)["memory_max"] == load.memory_max


def test_files_stay_for_reads_too() -> None:
    planned = steps("sequential/xfs/buffered", "random/xfs/buffered", "sequential-read/xfs/buffered", "writers-4/xfs/buffered")
    assert [step.keep for step in planned] == [True, True, False, False]
    assert planned[2].plan(RUST)["needs"] == {"large.data": 208 << 20}


def test_sections_have_modes_and_files_of_their_own() -> None:
    noisy = LOADS["noisy/xfs/dontcache"].scenario
    writer, readers = noisy.sections
    assert (writer.mode("dontcache"), readers.mode("dontcache")) == (("0", "1"), ("0", "0"))
    assert (writer.mode("direct"), readers.mode("direct")) == (("1", "0"), ("0", "0"))
    assert (noisy.files, readers.ios_per_job) == (3, None)
    assert noisy.needs == {"reader.0": 16 << 20, "reader.1": 16 << 20}
    assert noisy.written == 208 << 20


def test_sections_are_judged_one_by_one() -> None:
    planned = steps("noisy/xfs/dontcache")
    writer, readers = results.accept(boot("rust", planned), planned, 1, RUST)
    assert (writer.scenario, writer.first, writer.outcome.ios) == ("noisy: writer", True, 208)
    assert (readers.scenario, readers.first, readers.outcome.ios) == ("noisy: readers", False, 1000)
    found = [m for name in ("c", "rust") for m in results.accept(boot(name, planned), planned, 1, variant(name))]
    first, second = summary.summarize(found, summary.FULL)
    assert {cell.metric.name for cell in first.cells} - {cell.metric.name for cell in second.cells} >= {"peak_dirty", "switches"}
    assert second.cell("p99").values.keys() == {"c", "rust"}


def test_a_reader_that_hardly_read_is_refused() -> None:
    scenario = LOADS["noisy/xfs/dontcache"].scenario
    document = fio_output(scenario, "dontcache")
    document["jobs"][1] = json.loads(json.dumps(document["jobs"][1]))
    document["jobs"][1]["read"] |= {"total_ios": 99, "io_bytes": 99 * 4096}
    with pytest.raises(Failure, match="a job read 99 times, less than 100"):
        jobs.parse(json.dumps(document, indent=1), scenario, "dontcache")


@pytest.mark.parametrize(("error", "words"), [(28, "the device is full"), (95, "there is no DONTCACHE here")])
def test_errors_of_fio_are_named(error: int, words: str) -> None:
    scenario = LOADS["sequential/ext4/dontcache"].scenario
    document = fio_output(scenario, "dontcache")
    document["jobs"][0]["error"] = error
    with pytest.raises(Failure, match=words) as caught:
        jobs.parse(json.dumps(document, indent=1), scenario, "dontcache")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "cached", "words"),
    [("dontcache", 40000, "what was read stayed cached"), ("buffered", 0, "nothing that was read stayed cached")],
)
def test_reads_prove_their_mode_by_what_stays(mode: str, cached: int, words: str) -> None:
    planned = steps(f"device-read/device/{mode}")
    lines = boot("rust", planned)
    results.accept(lines, planned, 1, RUST)
    lines[1]["cached_at_end"]["cache"] = cached
    with pytest.raises(Failure, match=words):
        results.accept(lines, planned, 1, RUST)


def test_a_policy_that_was_not_active_is_refused() -> None:
    planned = steps("depth-1/xfs/dontcache")
    results.accept(boot("rust-inline", planned), planned, 1, variant("rust-inline"))
    with pytest.raises(Failure, match="the policy was the default"):
        results.accept(boot("rust", planned), planned, 1, variant("rust-inline"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"bios": 0}, "no bio was completed by a worker"),
        ({"runs": {}}, "no bio was completed by a worker"),
        ({"dropped": {"bios": 3}}, "lost bios"),
        ({"latency_us": {"20": 700}}, "lost bios"),
    ],
)
def test_counts_of_nothing_are_refused(changed: dict[str, Any], words: str) -> None:
    planned = steps("depth-1-counts/device/dontcache")
    lines = boot("rust", planned)
    (found,) = results.accept(lines, planned, 1, RUST)
    assert found.counts
    assert (found.counts.bios, found.counts.runs) == (800, 400)
    assert [found.counts.percentile_us(percent) for percent in (50, 99, 100)] == [20, 90, 90]
    lines[1]["counts"] |= changed
    with pytest.raises(Failure, match=words):
        results.accept(lines, planned, 1, RUST)


def test_finished_steps_of_a_dead_guest_count_and_the_rest_is_named() -> None:
    planned = steps("sequential/xfs/buffered", "random/xfs/buffered", "writers-4/xfs/buffered")
    lines = boot("c", planned)[:3]
    found = results.sift(lines, planned, 2, variant("c"))
    assert [m.scenario for m in found.measurements] == ["sequential", "random"]
    assert found.problems == ["boot of the c core, pair 2: the guest did not come to the end of its plan; the run is not reported"]


def test_a_refused_step_leaves_the_others() -> None:
    planned = steps("depth-1/device/dontcache", "depth-1-counts/device/dontcache")
    lines = boot("c", planned)
    lines[2] = {"kind": "refused", "scenario": "depth-1-counts", "mode": "dontcache", "reason": "this kernel counts nothing"}
    found = results.sift(lines, planned, 1, variant("c"))
    assert [m.scenario for m in found.measurements] == ["depth-1"]
    assert ["this kernel counts nothing" in problem for problem in found.problems] == [True]


def test_a_core_that_is_not_the_wanted_one_spoils_everything() -> None:
    planned = steps("depth-1/device/dontcache")
    found = results.sift(boot("c", planned), planned, 1, RUST)
    assert found.measurements == []
    assert "the active core was c" in found.problems[0]


class Guests:
    """Boots that are made up: how fast each is, and which of them die."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder
        self.booted: list[tuple[str, str, int]] = []
        self.noise = 0.0
        self.dies: set[int] = set()
        image = folder / "bzImage"
        image.write_text("a kernel")
        monkeypatch.setattr(vm, "run", self.run)
        monkeypatch.setattr(jobs, "require_uncached", lambda: "fio-3.39")
        monkeypatch.setattr(jobs, "FOLDER", FOLDER)
        monkeypatch.setattr(catalogue, "matrix", lambda only: whole_matrix(only, FOLDER))
        monkeypatch.setattr(kernel, "ensure", lambda: None)
        monkeypatch.setattr(paths, "PROJECT", folder)
        monkeypatch.setattr(paths, "BUILD", folder)
        monkeypatch.setattr(paths, "BZIMAGE", image)
        monkeypatch.setattr(boots, "DRIVER", FOLDER.parent / "guest")

    def run(self, options: vm.VmOptions, command: list[str], stdout: Any) -> vm.VmResult:
        plan = json.loads(command[-1])
        place = plan["file_system"]
        self.booted.append((options.core, place, len(plan["steps"])))
        planned = [
            results.Step(LOADS[f"{step['scenario']}/{place}/{step['mode']}"], step["keep"]) for step in plan["steps"]
        ]
        count = len(self.booted)
        speed = 1 + (self.noise * (count % 3 - 1) if options.core == "rust" else 0)
        lines = [json.dumps(line) + "\n" for line in boot(options.core, planned, speed)]
        dead = count in self.dies
        stdout("".join(lines[:2] if dead else lines).encode())
        if dead:
            raise vm.VmFailure("panic", "the guest panicked", self.folder / "log")
        return vm.VmResult(0, b"", b"", self.folder / "log", "tcg", ["qemu"], "10.0", options.core, "7.3.4", 0, False, 5.0)

    def bench(self, *arguments: str) -> int:
        """Run the benchmark; the place of its report is always the same."""
        return full.main(["--report", str(self.folder / "bench"), *arguments])


whole_matrix = catalogue.matrix


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Guests:
    return Guests(monkeypatch, tmp_path)


def test_it_stops_as_soon_as_the_intervals_are_narrow(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    assert guests.bench("--only", "depth-1/*") == 0
    places = ("xfs", "ext4", "device")
    assert guests.booted == [(core, place, 2) for place in places for core in ("c", "rust")] * full.FEWEST_PAIRS
    printed = capsys.readouterr().out
    assert "narrower than 10 % in 6 of 6 loads" in printed
    assert "switches" in printed
    assert "What the kernel counted" not in printed


def test_it_stops_at_the_limit_and_says_so(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    guests.noise = 0.4
    assert guests.bench("--only", "depth-1/device/dontcache", "--pairs", "5") == 0
    assert len(guests.booted) == 10
    assert "Stopped at the limit of 5 pairs: depth-1/device/dontcache." in capsys.readouterr().out


def test_one_pair_is_one_pair(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    assert guests.bench("--only", "depth-1/device/dontcache", "--pairs", "1") == 0
    printed = capsys.readouterr()
    report = (guests.folder / "bench" / "report.md").read_text() + (guests.folder / "bench" / "index.html").read_text()
    assert "1 load on C, Rust: 1 pair of boots, about" in printed.err
    assert "Stopped at the limit of 1 pair: " in printed.out and report.count("1 pair of boots") == 2
    assert not re.search(r"\b1 (pairs|boots|loads|minutes)\b", printed.out + printed.err + report)


def test_a_finished_boot_is_not_booted_again(guests: Guests) -> None:
    guests.bench("--only", "mixed/xfs", "--pairs", "2")
    assert len(guests.booted) == 4
    guests.bench("--only", "mixed/xfs", "--pairs", "3")
    assert len(guests.booted) == 6
    document = json.loads((guests.folder / "bench" / "results.json").read_text())
    assert [b["pair"] for b in document["boots"]] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("option", ["--mem", "--bps", "--iops"])
def test_an_amount_that_is_none_is_refused(guests: Guests, option: str) -> None:
    with pytest.raises(Failure, match=rf"{option} fast is no amount"):
        guests.bench(option, "fast")
    assert not guests.booted


def test_another_kernel_or_plan_starts_anew(guests: Guests) -> None:
    guests.bench("--only", "mixed/xfs", "--pairs", "1")
    (guests.folder / "bzImage").write_text("another kernel")
    guests.bench("--only", "mixed/xfs", "--pairs", "1")
    assert len(guests.booted) == 4
    guests.bench("--only", "mixed/ext4", "--pairs", "1")
    guests.bench("--only", "mixed/ext4", "--pairs", "1", "--bps", "50M")
    guests.bench("--only", "mixed/ext4", "--pairs", "1", "--iops", "500")
    assert len(guests.booted) == 10
    assert len(list((guests.folder / "bench" / "raw").glob("*.jsonl"))) == 2


def test_a_guest_that_dies_costs_one_load(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    guests.dies = {2}
    assert guests.bench("--only", "depth-1/xfs", "--only", "competing/xfs/dontcache", "--pairs", "2") == 1
    printed = capsys.readouterr()
    assert "boot of rust, pair 1, xfs: the guest panicked" in printed.err
    assert "did not come to the end" not in printed.err
    # Three loads, of which the second took the guest with it; the third got another one.
    assert guests.booted == [("c", "xfs", 3), ("rust", "xfs", 3), ("rust", "xfs", 1), ("c", "xfs", 2), ("rust", "xfs", 2)]
    document = json.loads((guests.folder / "bench" / "results.json").read_text())
    counted = [(m["pair"], m["scenario"], m["mode"]) for m in document["measurements"] if m["variant"] == "rust" and m["pair"] == 1]
    assert [(scenario, mode) for _, scenario, mode in counted] == [
        ("depth-1", "buffered"),
        ("depth-1", "dontcache"),
    ]
    assert any(line.startswith("partial: ") for line in document["verdicts"])
    booted = len(guests.booted)
    guests.bench("--only", "depth-1/xfs", "--only", "competing/xfs/dontcache", "--pairs", "2")
    assert booted < len(guests.booted) < 2 * booted


def test_loads_that_kill_every_guest_are_given_up(guests: Guests) -> None:
    guests.dies = {1, 3}
    assert guests.bench("--only", "competing/xfs", "--pairs", "4") == 1
    document = json.loads((guests.folder / "bench" / "results.json").read_text())
    assert {m["mode"] for m in document["measurements"]} == {"buffered", "dontcache"}
    assert [m["variant"] for m in document["measurements"] if m["mode"] == "dontcache"] == ["rust"] * 2


def test_an_accelerator_that_nobody_told_is_unknown(guests: Guests) -> None:
    guests.dies = {1, 2}
    assert guests.bench("--only", "competing/xfs", "--pairs", "1") == 1
    document = json.loads((guests.folder / "bench" / "results.json").read_text())
    assert {m["mode"] for m in document["measurements"]} == {"buffered"}
    assert document["setup"]["accelerator"] == "unknown"
    assert "Nothing could be measured of competing/xfs/dontcache." in document["verdicts"]


def without_core(monkeypatch: pytest.MonkeyPatch, guests: Guests, number: int) -> None:
    """From this boot on, the kernel is another one, which has no core."""

    def run(options: vm.VmOptions, command: list[str], stdout: Any) -> vm.VmResult:
        if len(guests.booted) + 1 >= number:
            guests.booted.append((options.core, "", 0))
            raise Failure("the kernel has no writeback core")
        return guests.run(options, command, stdout)

    monkeypatch.setattr(vm, "run", run)


def test_a_kernel_without_a_core_is_told_in_a_line(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    without_core(monkeypatch, guests, 1)
    with pytest.raises(Failure, match="^the kernel has no writeback core$"):
        guests.bench("--only", "competing/xfs", "--pairs", "2")
    assert len(guests.booted) == 1


def test_what_was_finished_before_a_kernel_without_a_core_is_partial(
    guests: Guests, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_core(monkeypatch, guests, 4)
    assert guests.bench("--only", "competing/xfs", "--pairs", "3") == 1
    assert len(guests.booted) == 4
    assert capsys.readouterr().err.splitlines()[-1] == "partial: the kernel has no writeback core"
    document = json.loads((guests.folder / "bench" / "results.json").read_text())
    assert {(m["pair"], m["variant"]) for m in document["measurements"]} == {(1, "c"), (1, "rust"), (2, "c")}
    assert document["verdicts"][-1] == "partial: the kernel has no writeback core"


def test_the_driver_says_that_there_is_no_core(tmp_path: Path) -> None:
    """In a guest; and the one line is all that is told of the boot."""
    planned = steps("depth-1/device/dontcache")
    plan = {"steps": [step.plan(RUST) for step in planned], "interval": 0.1, "file_system": "device"}
    missing = str(tmp_path / "rust_writeback")
    done = subprocess.run(
        [sys.executable, "-B", "-m", "bench", results.to_text(plan)],
        cwd=FOLDER.parent / "guest",
        env={**os.environ, "BENCH_DEBUGFS": missing, "NVME": "/dev/none"},
        capture_output=True,
    )
    assert done.returncode == 1
    found = results.sift(results.read_lines(done.stdout), planned, 1, RUST)
    said = f"{missing} is missing: this kernel has no writeback core to compare"
    assert (found.measurements, found.problems) == (
        [],
        [f"boot of the rust core, pair 1: {said}; the run is not reported"],
    )


def test_nothing_measured_is_no_success(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> vm.VmResult:
        raise vm.VmFailure("panic", "the guest panicked", guests.folder / "log")

    monkeypatch.setattr(vm, "run", run)
    with pytest.raises(Failure, match="nothing could be measured"):
        guests.bench("--only", "competing/xfs", "--pairs", "1")


def test_a_dry_run_touches_nothing(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(guests.folder.rglob("*"))
    assert guests.bench("--dry-run", "--only", "depth-1") == 0
    assert (sorted(guests.folder.rglob("*")), guests.booted) == (before, [])
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 6
    assert "6 loads on C, Rust: 3 to 10 pairs of boots, about" in printed.err


def test_a_boot_with_other_steps_is_not_taken_for_this_one(tmp_path: Path) -> None:
    kept = journal.Journal(tmp_path, "key")
    one = boots.Boot(1, RUST, "xfs", steps("mixed/xfs/dontcache"), b"{}\n", {"seconds": 1})
    kept.save(one)
    again = boots.Boot(1, RUST, "xfs", one.steps)
    assert journal.Journal(tmp_path, "key").has(again)
    assert (again.output, again.facts) == (one.output, one.facts)
    assert not kept.has(boots.Boot(1, RUST, "xfs", steps("noisy/xfs/dontcache")))
    assert not journal.Journal(tmp_path, "other").has(again)


def test_two_results_stand_side_by_side(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    guests.bench("--only", "mixed/xfs", "--pairs", "2")
    (guests.folder / "bench").rename(guests.folder / "a")
    guests.bench("--only", "mixed/xfs", "--pairs", "2", "--bps", "50M")
    capsys.readouterr()
    assert compare.main([str(guests.folder / "a"), str(guests.folder / "bench")]) == 0
    printed = capsys.readouterr().out
    assert "not alike: drive: an emulated NVMe drive limited to 112MiB/s in A, an emulated" in printed
    assert "no difference shown" in printed
    assert "mixed: readers" in printed


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [((0.9, 1.1), (1.0, 1.2), "no difference shown"), ((0.9, 1.0), (1.1, 1.2), "B higher"), ((2, 3), (1, 1.5), "B lower")],
)
def test_results_differ_where_intervals_do_not_meet(a: tuple[float, float], b: tuple[float, float], verdict: str) -> None:
    one, other = ({"low": low, "high": high} for low, high in (a, b))
    assert compare._verdict(one, other) == verdict


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="has no results.json"):
        compare.main([str(tmp_path), str(tmp_path)])


HIST = """# event histogram
#
# trigger info: hist:keys=usecs.buckets=8:vals=hitcount:sort=hitcount:size=16384 [active]
#

{ usecs: ~ 32-39 } hitcount:          3
{ usecs: ~ 1104-1111 } hitcount:          1

Totals:
    Hits: 4
    Entries: 2
    Dropped: 0
"""


def test_the_driver_reads_histograms_of_the_kernel() -> None:
    assert counts.entries(HIST, "usecs") == {"39": 3, "1111": 1}
    assert (counts.total(HIST, "Hits"), counts.total(HIST, "Dropped")) == (4, 0)
    line = "{ function: [ffffffff813fe6d0] bio_complete_work_fn                     } hitcount:        371\n"
    assert counts.entries(line, "function") == {"[ffffffff813fe6d0] bio_complete_work_fn": 371}
    with pytest.raises(files.Refused, match="does not say Hits"):
        counts.total("", "Hits")


def test_a_kernel_without_kprobe_events_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(counts, "KPROBES", str(tmp_path / "kprobe_events"))
    with pytest.raises(files.Refused, match="CONFIG_KPROBE_EVENTS"):
        counts.Counts(True).__enter__()
    with counts.Counts(False) as nothing:
        assert nothing.result() == {}
