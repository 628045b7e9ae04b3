# SPDX-License-Identifier: GPL-2.0
"""The benchmark runs what it says in a balanced order, goes on where it was, and tells what is missing."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_samples import LOADS, Guests, steps
from rust_writeback import paths
from rust_writeback.bench import boots, compare, journal, report, stats
from rust_writeback.bench.catalogue import Entry
from rust_writeback.errors import Failure
from rust_writeback.vm import emulated

from bench import load
from bench.kernel import Refused


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Guests:
    return Guests(monkeypatch, tmp_path)


def test_a_boot_is_of_one_place_and_drive_and_memory(guests: Guests) -> None:
    only = ("depth-1/*", "small-4k/xfs", "mixed/xfs")
    assert guests.bench("--pairs", "1", *(word for name in only for word in ("--only", name))) == 0
    rigs = [("xfs", 3), ("xfs", 3), ("xfs", 1), ("ext4", 3), ("device", 3)]
    assert guests.booted == [(core, *rig) for rig in rigs for core in ("c", "rust")]
    assert len(list((guests.folder / "bench" / "raw").glob("*.jsonl"))) == len(guests.booted)


def test_which_core_and_which_mode_is_first_alternates(guests: Guests) -> None:
    chosen = ("--only", "sequential/xfs", "--only", "random/xfs", "--drive", "stream", "--pairs", "4")
    assert guests.bench(*chosen) == 0
    assert guests.cores() == ["c", "rust", "rust", "c", "c", "rust", "rust", "c"]
    there, back = ["buffered", "dontcache", "direct"], ["direct", "dontcache", "buffered"]
    modes = [[step["mode"] for step in plan["steps"][::2]] for plan in guests.plans]
    assert modes == [there, there, back, back, there, there, back, back]
    # The second load of each mode writes over the file of the first.
    for plan in guests.plans:
        steps_of = [(step["name"].split("/")[0], step["keep"]) for step in plan["steps"]]
        assert steps_of == [("sequential", True), ("random", False)] * 3


def test_an_interrupted_run_continues_and_a_finished_one_starts_again(
    guests: Guests, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--only", "depth-1/device/dontcache", "--pairs", "2")
    monkeypatch.setattr(boots, "made", lambda: {"revision": "aaaa", "date": "2026-01-01", "code": "x"})
    guests.interrupted = 4
    with pytest.raises(KeyboardInterrupt):
        guests.bench(*arguments)
    monkeypatch.setattr(boots, "made", lambda: {"revision": "bbbb", "date": "2026-01-02", "code": "x"})
    with monkeypatch.context() as full_disk, pytest.raises(ZeroDivisionError):
        full_disk.setattr(report, "write", lambda *_: 1 // 0)
        guests.bench(*arguments)
    capsys.readouterr()
    assert guests.bench(*arguments) == 0
    assert guests.cores() == ["c", "rust", "rust", "c"]
    document = guests.document()
    assert [(boot["pair"], boot["revision"]) for boot in document["boots"]] == [*[(1, "aaaa")] * 2, (2, "aaaa"), (2, "bbbb")]
    assert (document["setup"]["revisions"], document["setup"]["code"]) == (["aaaa", "bbbb"], "x")
    said = "mixed: these boots are of 2 revisions, aaaa, bbbb, from 2026-01-01 on."
    assert document["verdicts"][0] == capsys.readouterr().out.splitlines()[0].rstrip() == said
    assert guests.bench(*arguments) == 0 and len(guests.booted) == 8


@pytest.mark.parametrize(
    "words", ["--mem=fast", "--drive=floppy", "--drive=bps=1G,iops=0", "--pairs=0", "--native=2", "--cpus=0"]
)
def test_a_wrong_option_of_bench_gets_one_line(guests: Guests, words: str) -> None:
    name, _, value = words.removeprefix("--").partition("=")
    with pytest.raises(Failure, match=f"(?i){name}.*{value}") as caught:
        guests.bench(words)
    assert "\n" not in str(caught.value) and caught.value.status == 2
    assert not guests.booted


def test_another_machine_load_or_driver_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench").mkdir()
    monkeypatch.setattr(boots, "DRIVER", tmp_path)
    monkeypatch.setattr(paths, "BZIMAGE", tmp_path / "bzImage")
    load, keys = LOADS["mixed/xfs/dontcache"], []
    for name in ("bench/load.py", "load.c", "bzImage"):
        keys.append(journal.fingerprint(boots.Machine(), [load], 1))
        (tmp_path / name).write_text("new")
    drive, scenario = replace(load.drive, bps="1M"), replace(load.scenario, text="; new")
    changed = (load, replace(load, drive=drive), replace(load, entry=Entry("mixed")), replace(load, scenario=scenario))
    keys += [journal.fingerprint(boots.Machine(), [one], 1) for one in changed]
    keys += [journal.fingerprint(boots.Machine(1), [load], 1), journal.fingerprint(boots.Machine(), [load], 2)]
    assert len(set(keys)) == len(keys) == 9
    one, again, other = (boots.Boot(1, "rust", steps("mixed/xfs/dontcache")) for _ in range(3))
    one.output, one.facts = b"{}\n", {"seconds": 1}
    journal.Journal(tmp_path / "raw", keys[0]).save(one)
    assert journal.Journal(tmp_path / "raw", keys[0]).has(again) and again == one
    assert not journal.Journal(tmp_path / "raw", keys[1]).has(other)


def test_a_boot_in_which_qemu_died_is_counted_once_it_came_through(guests: Guests) -> None:
    guests.dies = {2: ("qemu", 2)}
    assert guests.bench("--only", "depth-1/device", "--pairs", "2") == 0
    document = guests.document()
    # What came before QEMU died is forgotten: every load is there once.
    assert len(document["measurements"]) == 2 * 3 * 2
    assert "QEMU died in 2 of 6 boots; they were tried again." in document["verdicts"]


@pytest.mark.parametrize(("kind", "times"), [("qemu", emulated.TRIES), ("panic", 1)])
def test_a_death_ends_it_and_it_goes_on_there(guests: Guests, kind: str, times: int) -> None:
    guests.dies = {2: (kind, times)}
    assert guests.bench("--only", "depth-1/device", "--pairs", "2") == 1
    assert len(guests.document()["measurements"]) == 3
    assert f"{kind} died" in guests.document()["verdicts"][-1]
    guests.booted.clear()
    guests.dies.clear()
    assert guests.bench("--only", "depth-1/device", "--pairs", "2") == 0
    assert guests.cores() == ["rust", "rust", "c"]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ({"core": "c"}, "the kernel ran the c core instead of rust"),
        ({"status": 3, "stderr": b"Traceback\nKeyError: 'jobs'\n"}, "the guest's driver ended with status 3: KeyError: 'jobs'"),
    ],
)
def test_a_boot_that_ended_otherwise_is_a_failure(guests: Guests, end: dict[str, Any], words: str) -> None:
    guests.end = end
    with pytest.raises(Failure, match=words):
        guests.bench("--only", "mixed/xfs", "--pairs", "1")
    assert not (guests.folder / "bench" / "index.html").exists()


def test_two_results_stand_side_by_side(guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    guests.bench("--only", "competing/xfs", "--pairs", "2")
    (guests.folder / "bench").rename(guests.folder / "a")
    guests.bench("--only", "competing/xfs", "--pairs", "2", "--drive", "bps=50M")
    capsys.readouterr()
    folders = [str(guests.folder / name) for name in ("a", "bench")]
    assert compare.main(folders) == 0
    printed = capsys.readouterr().out
    assert "the setups differ: drives: " in printed and "bps=50M (50MiB/s) in B" in printed
    (guests.folder / "bench" / "results.json").write_text(json.dumps(guests.document() | {"format": 2}))
    with pytest.raises(Failure, match="is of format 2, not 6; make it again"):
        compare.main(folders)


def test_results_differ_where_intervals_do_not_meet() -> None:
    one, meets, higher = (stats.Ratio(low + 0.1, low, low + 0.2, 3) for low in (0.9, 1.0, 1.2))
    assert compare._meet(one, meets) == "no difference shown"
    assert (compare._meet(one, higher), compare._meet(higher, one)) == ("B higher", "B lower")


def test_a_boot_has_the_drive_of_its_loads_and_memory_for_one_that_is_in_it() -> None:
    machine = boots.Machine()
    on_nvme, in_memory = (boots.Boot(1, "rust", steps(name)) for name in ("append/xfs/buffered", "depth-1/xfs/buffered"))
    options = machine.options(on_nvme)
    assert options.nvme and (options.nvme.bps, options.flush_us) == ("125M", boots.FLUSH_US)
    assert machine.options(in_memory).nvme is None and int(machine.mem(in_memory).removesuffix("M")) > 1024 + 1280
    assert machine.plan(in_memory)["drive"] == {"megabytes": 1280, "nanoseconds": 20_000}


def test_limits_of_dirty_memory_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in bytes or in percent, of which the other is 0 then."""
    values = {"dirty_bytes": "0", "dirty_ratio": "20", "dirty_background_bytes": "999424", "dirty_background_ratio": "0"}
    before = {f"/proc/sys/vm/{name}": text for name, text in values.items()}
    values = dict(before)

    def write(path: str, text: str) -> None:
        assert text != "0", "the kernel takes no limit of nothing"
        other = path.replace("_bytes", "_ratio") if "_bytes" in path else path.replace("_ratio", "_bytes")
        values.update({path: text, other: "0"})

    monkeypatch.setattr(load, "read", values.__getitem__)
    monkeypatch.setattr(load, "write", write)
    with pytest.raises(ZeroDivisionError), load.settings(LOADS["capped/xfs/buffered"].entry.sysctls):
        assert (values["/proc/sys/vm/dirty_bytes"], values["/proc/sys/vm/dirty_ratio"]) == (str(64 << 20), "0")
        raise ZeroDivisionError
    assert values == before


@pytest.mark.parametrize(
    ("script", "words"),
    [("exit 1", "1048576 bytes of memory are not to be had"), ("echo $$ >pid; echo touched", "did not live to its end")],
)
def test_a_task_that_uses_memory_lives_as_long_as_the_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, words: str
) -> None:
    program = tmp_path / "load"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refused, match=words), load.memory_in_use(1 << 20):
        os.waitid(os.P_PID, int(Path("pid").read_text()), os.WEXITED | os.WNOWAIT)
