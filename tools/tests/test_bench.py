# SPDX-License-Identifier: GPL-2.0
"""The benchmark runs what it says in a balanced order, goes on where it was, and tells what is missing."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_samples import LOADS, Guests, accept, boot, steps
from rust_writeback import paths
from rust_writeback.vm import emulated
from rust_writeback.bench import (
    boots,
    catalogue,
    compare,
    drives,
    journal,
    report,
    results,
    short,
    summary,
)
from rust_writeback.bench.catalogue import Entry
from rust_writeback.errors import Failure
from rust_writeback.progress import Bar

from bench import load  # noqa: E402
from bench import kernel as files  # noqa: E402

RUST = "rust"


def test_files_stay_for_reads_too() -> None:
    planned = steps(*(f"{name}/xfs/buffered" for name in ("sequential", "random", "sequential-read", "writers-4")))
    assert [step.keep for step in planned] == [True, True, False, False]
    assert planned[2].plan()["needs"] == {"large.data": 208 << 20}


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
    writer, readers = accept(boot("rust", planned), planned, 1, RUST)
    assert (writer.scenario, writer.first, writer.outcome.ios) == ("noisy: writer", True, 208)
    assert (readers.scenario, readers.first, readers.outcome.ios) == ("noisy: readers", False, 1000)
    found = [m for name in ("c", "rust") for m in accept(boot(name, planned), planned, 1, name)]
    first, second = summary.summarize(found, summary.FULL)
    of_first, of_second = ({cell.metric.name for cell in group.cells} for group in (first, second))
    assert of_first - of_second >= {"peak_dirty", "switches"}
    assert second.cell("p99").values.keys() == {"c", "rust"}


@pytest.mark.parametrize(
    ("mode", "cached", "words"),
    [("dontcache", 40000, "what was read stayed cached"), ("buffered", 0, "nothing that was read stayed cached")],
)
def test_reads_prove_their_mode_by_what_stays(mode: str, cached: int, words: str) -> None:
    planned = steps(f"device-read/device/{mode}")
    lines = boot("rust", planned)
    accept(lines, planned, 1, RUST)
    lines[1]["cached_at_end"]["cache"] = cached
    with pytest.raises(Failure, match=words):
        accept(lines, planned, 1, RUST)


def test_a_refused_step_leaves_the_others() -> None:
    planned = steps("depth-1/device/buffered", "depth-1/device/dontcache")
    lines = boot("c", planned)
    lines[2] = {"kind": "refused", "scenario": "depth-1", "mode": "dontcache", "reason": "the drive is full"}
    found = results.sift(lines, planned, 1, "c")
    assert [m.mode for m in found.measurements] == ["buffered"]
    assert ["the drive is full" in problem for problem in found.problems] == [True]


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Guests:
    return Guests(monkeypatch, tmp_path)


def modes(plan: dict[str, Any]) -> list[str]:
    """The modes of a boot in their order."""
    return list(dict.fromkeys(step["mode"] for step in plan["steps"]))


def test_a_boot_is_of_one_place_and_drive_and_memory(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    only = ("depth-1/*", "small-4k/xfs", "mixed/xfs")
    assert guests.bench("--pairs", "1", *(word for name in only for word in ("--only", name))) == 0
    rigs = [("xfs", 3), ("xfs", 3), ("xfs", 1), ("ext4", 3), ("device", 3)]
    assert guests.booted == [(core, *rig) for rig in rigs for core in ("c", "rust")]
    printed = capsys.readouterr().out
    assert "switches" in printed
    names = {path.name for path in (guests.folder / "bench" / "raw").glob("*.jsonl")}
    assert len(names) == len(guests.booted)
    assert {"1-xfs-fast-1G-c.jsonl", "1-xfs-cloud-1G-c.jsonl", "1-mixed-dontcache-xfs-stream-192M-rust.jsonl"} < names


def test_which_core_and_which_mode_is_first_alternates(guests: Guests) -> None:
    assert guests.bench("--only", "random-burst/xfs", "--only", "small-4k/xfs", "--pairs", "4") == 0
    assert guests.cores() == ["c", "rust", "rust", "c", "c", "rust", "rust", "c"]
    there, back = ["buffered", "dontcache", "direct"], ["direct", "dontcache", "buffered"]
    assert [modes(plan) for plan in guests.plans] == [there, there, back, back, there, there, back, back]
    # Figures and plots have one order all the same.
    document = guests.document()
    assert document["setup"]["variants"] == ["c", "rust"]
    assert list(dict.fromkeys(group["mode"] for group in document["summary"])) == there


def test_a_file_is_kept_for_the_next_load_whichever_mode_is_first(guests: Guests) -> None:
    chosen = ("--only", "sequential/xfs", "--only", "random/xfs", "--drive", "stream", "--pairs", "2")
    assert guests.bench(*chosen) == 0
    for plan in guests.plans:
        names = [(step["scenario"], step["keep"]) for step in plan["steps"]]
        assert names == [("sequential", True), ("random", False)] * 3
        assert [step["mode"] for step in plan["steps"][::2]] == [step["mode"] for step in plan["steps"][1::2]]


def bench_of_mixed(guests: Guests) -> int:
    return guests.bench("--only", "mixed/xfs", "--pairs", "3")


def make_run(_: Guests) -> int:
    return short.main([])


@pytest.mark.parametrize("run", [bench_of_mixed, make_run])
def test_what_was_interrupted_goes_on_and_what_was_finished_starts_anew(
    guests: Guests, run: Callable[[Guests], int]
) -> None:
    guests.interrupted = 4
    with pytest.raises(KeyboardInterrupt):
        run(guests)
    assert guests.cores() == ["c", "rust", "rust"]
    guests.interrupted = 0
    assert run(guests) == 0
    assert guests.cores() == ["c", "rust", "rust", "c", "c", "rust"]
    (folder,) = (path.parent for path in guests.folder.glob("*/results.json"))
    assert [boot["pair"] for boot in guests.document(folder.name)["boots"]] == [1, 1, 2, 2, 3, 3]
    assert run(guests) == 0
    assert len(guests.booted) == 12


def test_a_boot_that_was_kept_keeps_its_revision_and_its_date(
    guests: Guests, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--only", "depth-1/device/dontcache", "--pairs", "2")

    def made_by(revision: str, day: int) -> None:
        monkeypatch.setattr(boots, "revision", lambda: revision)
        monkeypatch.setattr(boots, "now", lambda: f"2026-01-0{day} 12:00:00 UTC")

    made_by("aaaa", 1)
    guests.interrupted = 4
    with pytest.raises(KeyboardInterrupt):
        guests.bench(*arguments)
    guests.interrupted = 0
    made_by("bbbb", 2)
    capsys.readouterr()
    guests.bench(*arguments)
    document = guests.document()
    assert [boot["revision"] for boot in document["boots"]] == ["aaaa"] * 3 + ["bbbb"]
    assert [boot["date"][:10] for boot in document["boots"]] == ["2026-01-01"] * 3 + ["2026-01-02"]
    assert document["setup"]["revisions"] == ["aaaa", "bbbb"]
    said = "mixed: these boots are of 2 revisions, aaaa, bbbb, from 2026-01-01 12:00:00 UTC on."
    folder = guests.folder / "bench"
    assert document["verdicts"][0] == capsys.readouterr().out.splitlines()[0] == said
    assert (folder / "report.md").read_text().splitlines()[0] == f"**{said}**"
    body = (folder / "index.html").read_text().partition("</h1>")[2]
    assert body.lstrip().startswith(f"<p><strong>{said}</strong></p>")
    # All of one revision: there is nothing to warn of, whichever it is.
    guests.bench(*arguments)
    assert guests.document()["setup"]["revisions"] == ["bbbb"]
    texts = [(folder / name).read_text() for name in ("report.md", "index.html", "results.json")]
    assert not any("mixed:" in text for text in (capsys.readouterr().out, *texts))


def test_a_finished_benchmark_that_could_not_be_reported_is_not_measured_again(
    guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--only", "depth-1/device/dontcache", "--pairs", "1")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(report, "write", fail)
        with pytest.raises(OSError, match="No space"):
            guests.bench(*arguments)
    guests.bench(*arguments)
    assert len(guests.booted) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mem", "fast"], "--mem fast is not a size"),
        (["--drive", "floppy"], "^--drive floppy: 'floppy' is unknown; give cloud, stream, fast, or limits like"),
        (["--drive", "cloud,bps=1G"], "^--drive cloud,bps=1G: 'cloud' is unknown; give cloud"),
        (["--drive", "bps=1G,iops=0"], "^--drive bps=1G,iops=0: 'iops=0' is unknown; give cloud"),
        (["--pairs", "0"], "--pairs has to be at least 1"),
        (["--native=2"], "NATIVE=2 is unknown; give NATIVE=1, or omit it"),
        (["--cpus", "0"], "--cpus 0 is not possible; give 1 to 16"),
    ],
)
def test_what_cannot_be_asked_for_is_told_in_a_line(guests: Guests, arguments: list[str], words: str) -> None:
    with pytest.raises(Failure, match=words) as caught:
        guests.bench(*arguments)
    assert "\n" not in str(caught.value) and caught.value.status == 2
    assert not guests.booted


def test_another_kernel_or_plan_starts_anew(guests: Guests) -> None:
    """Where it had been interrupted before its last boot."""

    def booted(*arguments: str) -> int:
        guests.interrupted = len(guests.booted) + 2
        with pytest.raises(KeyboardInterrupt):
            guests.bench("--pairs", "1", *arguments)
        before = len(guests.booted)
        guests.interrupted = 0
        guests.bench("--pairs", "1", "--only", "mixed/ext4")
        return len(guests.booted) - before

    assert booted("--only", "mixed/ext4") == 1
    others = ("--drive=bps=50M", "--drive=fast", "--mem=128M", "--cpus=1")
    assert {other: booted("--only", "mixed/ext4", other) for other in others} == dict.fromkeys(others, 2)
    assert booted("--only", "mixed/xfs") == 2
    assert booted("--only", "mixed/ext4", "--pairs", "2") == 2
    assert len(list((guests.folder / "bench" / "raw").glob("*.jsonl"))) == 2


def test_what_a_boot_is_made_of_has_to_be_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench").mkdir()
    monkeypatch.setattr(boots, "DRIVER", tmp_path)
    monkeypatch.setattr(paths, "BZIMAGE", tmp_path / "bzImage")
    load, keys = LOADS["mixed/xfs/dontcache"], []

    def key(load: catalogue.Load = load) -> str:
        return journal.fingerprint(boots.Machine(), [load], [RUST], 1)

    for name in ("bench/load.py", "load.c", "bzImage"):
        keys.append(key())
        (tmp_path / name).write_text("new")
    keys += [key(), key(replace(load, drive=replace(load.drive, bps="1M"))), key(replace(load, entry=Entry("mixed")))]
    keys.append(key(replace(load, scenario=replace(load.scenario, text="; new"))))
    assert len(set(keys)) == len(keys) == 7
    assert key() == keys[3]


THREE = ("--only", "writers-4/xfs/buffered", "--only", "writers-4/xfs/dontcache", "--only", "competing/xfs/dontcache")
"""Three loads that share a boot."""


def test_a_guest_that_dies_costs_one_load(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    guests.dies = {2}
    assert guests.bench(*THREE, "--pairs", "2") == 1
    printed = capsys.readouterr()
    assert "boot of rust, pair 1, xfs: the guest panicked" in printed.err
    assert "did not finish its plan" not in printed.err
    # Three loads, of which the second took the guest with it; the third got another one.
    booted = [("c", 3), ("rust", 3), ("rust", 1), ("rust", 2), ("c", 2)]
    assert guests.booted == [(core, "xfs", loads) for core, loads in booted]
    document = guests.document()
    counted = [m for m in document["measurements"] if m["variant"] == "rust" and m["pair"] == 1]
    assert [(m["scenario"], m["mode"]) for m in counted] == [
        ("writers-4", "buffered"),
        ("competing: first", "dontcache"),
        ("competing: second", "dontcache"),
    ]
    assert any(line.startswith("partial: ") for line in document["verdicts"])


def test_a_boot_in_which_the_guest_died_is_not_kept(guests: Guests) -> None:
    guests.dies, guests.interrupted = {2}, 4
    with pytest.raises(KeyboardInterrupt):
        guests.bench(*THREE, "--pairs", "2")
    assert guests.booted == [("c", "xfs", 3), ("rust", "xfs", 3), ("rust", "xfs", 1)]
    guests.booted.clear()
    guests.dies, guests.interrupted = set(), 0
    assert guests.bench(*THREE, "--pairs", "2") == 0
    assert guests.booted == [("rust", "xfs", 3), ("rust", "xfs", 3), ("c", "xfs", 3)]


def test_loads_that_kill_every_guest_are_given_up(guests: Guests) -> None:
    guests.dies = {1, 3}
    assert guests.bench("--only", "competing/xfs/[bd][uo]*", "--pairs", "4") == 1
    document = guests.document()
    assert {m["mode"] for m in document["measurements"]} == {"buffered", "dontcache"}
    assert [m["variant"] for m in document["measurements"] if m["mode"] == "dontcache"] == ["rust"] * 2


def test_an_accelerator_that_nobody_told_is_unknown(guests: Guests) -> None:
    guests.dies = {1, 2}
    assert guests.bench("--only", "competing/xfs/[bd][uo]*", "--pairs", "1") == 1
    document = guests.document()
    assert {m["mode"] for m in document["measurements"]} == {"buffered"}
    assert document["setup"]["accelerator"] == "unknown"
    assert "Nothing could be measured of competing/xfs/dontcache." in document["verdicts"]


def test_a_boot_in_which_qemu_died_is_counted_once_it_came_through(
    guests: Guests, capsys: pytest.CaptureFixture[str]
) -> None:
    guests.qemu_dies = {2: 2}
    assert guests.bench("--only", "depth-1/device", "--pairs", "2") == 0
    document = guests.document()
    # What came before QEMU died is forgotten: every load is there once.
    assert len(document["measurements"]) == 2 * 3 * 2
    assert [boot["qemu_deaths"] for boot in document["boots"]] == [0, 2, 0, 0]
    said = "QEMU died in 2 of 6 boots; they were tried again."
    assert said in document["verdicts"] and said in capsys.readouterr().out


def test_a_qemu_that_dies_too_often_ends_it_and_it_goes_on_there(guests: Guests) -> None:
    guests.qemu_dies = {2: emulated.TRIES}
    with pytest.raises(emulated.VmFailure, match="QEMU died") as caught:
        guests.bench("--only", "depth-1/device", "--pairs", "2")
    assert caught.value.qemu_died
    guests.booted.clear()
    guests.qemu_dies.clear()
    assert guests.bench("--only", "depth-1/device", "--pairs", "2") == 0
    assert guests.cores() == ["rust", "rust", "c"]


def test_boots_of_the_wrong_core_are_not_reported(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    guests.told = lambda name, planned: boot("c", planned)
    assert guests.bench("--only", "competing/xfs", "--pairs", "1") == 1
    assert "partial: boot of the rust core, pair 1: the active core was c" in capsys.readouterr().err
    document = guests.document()
    assert {m["variant"] for m in document["measurements"]} == {"c"}
    assert not any(figures["ratios"] for group in document["summary"] for figures in group["figures"].values())
    (guests.folder / "bench" / "index.html").unlink()
    guests.told = lambda name, planned: boot("kernel", planned)
    with pytest.raises(Failure, match="nothing could be measured"):
        guests.bench("--only", "competing/xfs", "--pairs", "1")
    assert not (guests.folder / "bench" / "index.html").exists()


@pytest.mark.parametrize(
    ("core", "status", "stderr", "words"),
    [
        ("c", 0, b"", "the kernel ran the c core instead of rust"),
        ("rust", 3, b"Traceback\nKeyError: 'jobs'\n", "the guest's driver ended with status 3: KeyError: 'jobs'"),
    ],
)
def test_a_boot_that_ended_otherwise_is_a_failure(core: str, status: int, stderr: bytes, words: str) -> None:
    one, stream = boots.Boot(1, RUST, steps("mixed/xfs/dontcache")), boots.Stream(Bar("a boot", 1))
    with pytest.raises(Failure, match=words):
        boots.check(one, stream, core, status, stderr, "log")
    boots.check(one, stream, "rust", 0, b"", "log")
    stream(b'{"kind": "refused", "reason": "no drive"}\n')
    boots.check(one, stream, "rust", 1, b"", "log")


def test_a_dry_run_touches_nothing(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(guests.folder.rglob("*"))
    assert guests.bench("--dry-run", "--only", "depth-1") == 0
    assert (sorted(guests.folder.rglob("*")), guests.booted) == (before, [])
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 9
    title = LOADS["depth-1/xfs/buffered"].scenario.title
    assert f"depth-1/xfs/buffered, fast (20 us a request): {title}, 1074 MB\n" in printed.out
    assert "9 loads on C, Rust: 10 pairs of boots, about" in printed.err


def test_a_boot_with_other_steps_is_not_taken_for_this_one(tmp_path: Path) -> None:
    kept = journal.Journal(tmp_path, "key")
    one = boots.Boot(1, RUST, steps("mixed/xfs/dontcache"), b"{}\n", {"seconds": 1})
    kept.save(one)
    again = boots.Boot(1, RUST, one.steps)
    assert journal.Journal(tmp_path, "key").has(again)
    assert (again.output, again.facts) == (one.output, one.facts)
    assert not kept.has(boots.Boot(1, RUST, steps("noisy/xfs/dontcache")))
    names = ["random/xfs/buffered", "temp-burst/xfs/buffered"]
    two, back = steps(*names), steps(*names[::-1])
    kept.save(boots.Boot(1, RUST, two, b"{}\n", {"seconds": 1}))
    assert kept.has(boots.Boot(1, RUST, two)) and not kept.has(boots.Boot(1, RUST, back))
    assert not journal.Journal(tmp_path, "other").has(again)


def test_two_results_stand_side_by_side(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    guests.bench("--only", "mixed/xfs", "--only", "competing/xfs", "--pairs", "2")
    (guests.folder / "bench").rename(guests.folder / "a")
    guests.bench("--only", "mixed/xfs", "--only", "competing/xfs", "--pairs", "2", "--drive", "bps=50M")
    capsys.readouterr()
    folders = [str(guests.folder / name) for name in ("a", "bench")]
    assert compare.main(folders) == 0
    printed = capsys.readouterr().out
    assert "the setups differ: drives: stream (112MiB/s) in A, bps=50M (50MiB/s) in B" in printed
    assert "no difference shown" in printed
    assert "mixed: readers" in printed
    # Both kinds of comparison: of the cores, and of DONTCACHE with buffered.
    assert re.search(r"Rust/C +1\.0", printed) and re.search(r"dontcache/buffered +1\.0", printed)


def test_results_of_another_format_are_refused(guests: Guests) -> None:
    guests.bench("--only", "depth-1/device/dontcache", "--pairs", "1")
    path = guests.folder / "bench" / "results.json"
    path.write_text(json.dumps(guests.document() | {"format": 2}))
    with pytest.raises(Failure, match="is of format 2, not 4; make it again"):
        compare.main([str(path.parent)] * 2)


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ((0.9, 1.1), (1.0, 1.2), "no difference shown"),
        ((0.9, 1.0), (1.1, 1.2), "B higher"),
        ((2, 3), (1, 1.5), "B lower"),
    ],
)
def test_results_differ_where_intervals_do_not_meet(
    a: tuple[float, float], b: tuple[float, float], verdict: str
) -> None:
    one, other = ({"kind": "ratio", "low": low, "high": high} for low, high in (a, b))
    assert compare._verdict(one, other) == verdict
    assert compare._verdict(one, other | {"kind": "difference"}) == "a ratio and a difference"


def test_the_guest_gets_memory_for_a_drive_that_is_in_it() -> None:
    machine = boots.Machine()
    emulated, held = (boots.Boot(1, RUST, steps(name)) for name in ("append/xfs/buffered", "depth-1/xfs/buffered"))
    options = machine.options(emulated)
    assert (options.mem, options.share) == ("1024M", boots.DRIVER)
    assert options.nvme and (options.nvme.bps, options.nvme.iops) == ("125M", "3000")
    assert options.flush_us == boots.FLUSH_US
    assert "drive" not in machine.plan(emulated)
    options = machine.options(held)
    assert options.nvme is None
    assert 1280 <= int(options.mem.removesuffix("M")) - 1024 < 1.1 * 1280
    assert machine.plan(held)["drive"] == {"megabytes": 1280, "nanoseconds": 20_000, "depth": 1023, "kilobytes": 512}
    assert drives.FAST.in_memory and not drives.CLOUD.in_memory


class Sysctls:
    """The limits of dirty memory as the kernel has them: in bytes or in percent, of which the other is 0 then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
        self.values = {f"/proc/sys/vm/{name}": text for name, text in values.items()}
        monkeypatch.setattr(load, "read", self.values.__getitem__)
        monkeypatch.setattr(load, "write", self.write)

    def write(self, path: str, text: str) -> None:
        pairs = (("_bytes", "_ratio"), ("_ratio", "_bytes"))
        other = next(path.replace(one, two) for one, two in pairs if path.endswith(one))
        assert text != "0", "the kernel takes no limit of nothing"
        self.values |= {path: text, other: "0"}


@pytest.mark.parametrize(("ratio", "bytes_"), [("20", "0"), ("0", "999424")])
def test_limits_of_dirty_memory_are_put_back(monkeypatch: pytest.MonkeyPatch, ratio: str, bytes_: str) -> None:
    machine = Sysctls(
        monkeypatch, dirty_bytes=bytes_, dirty_ratio=ratio, dirty_background_bytes="0", dirty_background_ratio="10"
    )
    before = dict(machine.values)
    wanted = LOADS["capped/xfs/buffered"].entry.sysctls
    with pytest.raises(ZeroDivisionError), load.settings(wanted):
        assert machine.values["/proc/sys/vm/dirty_bytes"] == str(64 << 20)
        assert machine.values["/proc/sys/vm/dirty_ratio"] == "0"
        raise ZeroDivisionError
    assert machine.values == before


def touching(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """A program of loads that does this instead."""
    program = folder / "load"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_task_that_uses_memory_lives_as_long_as_the_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    touching(monkeypatch, tmp_path, f"echo $$ >{tmp_path}/pid; echo $* >{tmp_path}/words; echo touched; exec sleep 600")
    with load.memory_in_use(12345):
        process = int((tmp_path / "pid").read_text())
        assert (tmp_path / "words").read_text() == "touch 12345\n"
        os.kill(process, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    (tmp_path / "pid").unlink()
    with load.memory_in_use(0):
        assert not (tmp_path / "pid").exists()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 1", "1048576 bytes of memory are not to be had"),
        ("echo help; exec sleep 600", "are not to be had"),
        ("echo touched", "did not live to its end"),
    ],
)
def test_memory_that_is_not_in_use_is_no_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, words: str
) -> None:
    touching(monkeypatch, tmp_path, script)
    with pytest.raises(files.Refused, match=words), load.memory_in_use(1 << 20):
        subprocess.run(["sleep", "0.3"], check=True)
