# SPDX-License-Identifier: GPL-2.0
"""make price CPUS=...: what the plugin says is read, lines are named and grouped, and what proves nothing is refused."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rust_writeback.bench import cache_lines, price, transfers, transfers_page
from rust_writeback.bench.cache_lines import Line, Symbols, Transfers
from rust_writeback.errors import Failure
from rust_writeback.vm import emulated

SYSTEM_MAP = """\
ffffffff81000000 T do_write
ffffffff81000100 t ktime_get
ffffffff81000200 t ktime_get_coarse_real_ts64
ffffffff81000300 t not_ktime_get
ffffffff81000400 T memcpy_orig
ffffffff82000000 D _sdata
ffffffff82000000 D jiffies
ffffffff82000010 d counter
ffffffff82000100 B table
ffffffff82000100 B __table_start
ffffffff82001000 B _end
"""
SYMBOLS = Symbols(SYSTEM_MAP)
HEAP, PAGE, STACK = 0xFFFF888000001000, 0xFFFFEA0000000040, 0xFFFFC90000000080
CPUS = 2
WRITES = transfers.BYTES // transfers.SIZE


def test_regions_are_read() -> None:
    said = ["region", f"3 1 do_write {HEAP:x}", "2 0 other ffffffff82000000", "region", "region", f"1 1 f {PAGE:x}"]
    first, second, third = cache_lines.regions(f"{line}\n" for line in said)
    assert first == [Transfers(3, 1, "do_write", HEAP), Transfers(2, 0, "other", 0xFFFFFFFF82000000)]
    assert second == []
    assert third == [Transfers(1, 1, "f", PAGE)]
    assert list(cache_lines.regions([])) == []


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        (0xFFFFFFFF82000000, "jiffies, counter"),
        (0xFFFFFFFF82000040, "counter+0x30"),
        (0xFFFFFFFF82000100, "table"),
        (0xFFFFFFFF82000180, "table+0x80"),
        (HEAP, "heap or per-CPU"),
        (STACK, "stack or vmalloc"),
        (PAGE, "struct page"),
        (0xFFFFFFFF82001000, "other"),
    ],
)
def test_a_line_has_a_name(address: int, kind: str) -> None:
    assert SYMBOLS.kind(address) == kind


def test_a_line_adds_up() -> None:
    region = [Transfers(3, 1, "a", HEAP), Transfers(2, 2, "b", HEAP), Transfers(1, 0, "a", HEAP + 64)]
    first, second = cache_lines.lines(region, SYMBOLS)
    assert (first.functions, first.handovers, first.transfers) == (Counter(a=3, b=2), 3, 5)
    assert (second.functions, second.handovers, second.transfers) == (Counter(a=1), 0, 1)


def heap(**functions: int) -> Line:
    return Line(cache_lines.HEAP, Counter(functions), sum(functions.values()) // 2)


def test_lines_of_the_heap_are_known_by_their_functions() -> None:
    # A function that hardly ever transfers the line does not make another line of it.
    sums = cache_lines.by_key([heap(lock=50, unlock=50), heap(lock=30, unlock=70, rare=1), heap(lock=50)])
    assert [(line.number, line.transfers) for line in sums.values()] == [(2, 201), (1, 50)]


def test_other_lines_are_known_by_what_they_are() -> None:
    pages = [Line("struct page", Counter(a=1)), Line("struct page", Counter(b=2))]
    sums = cache_lines.by_key([*pages, Line("jiffies", Counter(a=1))])
    assert [(line.kind, line.number, line.transfers) for line in sums.values()] == [("struct page", 2, 3), ("jiffies", 1, 1)]


def test_alike_lines_of_different_loads_are_in_one_group() -> None:
    loads = [
        cache_lines.by_key([heap(lock=60, spin=30, owner=10), heap(free=40)]),
        cache_lines.by_key([heap(lock=70, owner=30), heap(free=20, alloc=60)]),
    ]
    group_of = cache_lines.groups(loads)
    one, other = (cache_lines.merged(load, group_of) for load in loads)
    assert len({*one, *other}) == 3, "the line that is allocated as well is another one"
    (shared,) = one.keys() & other.keys()
    assert (one[shared].transfers, other[shared].transfers) == (100, 100)


def test_what_is_skipped_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "SKIPPED", ("memcpy*", "ktime_*"))
    assert transfers.skipped(SYSTEM_MAP) == ["ktime_get", "ktime_get_coarse_real_ts64", "memcpy_orig"]


def test_a_name_that_the_kernel_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "SKIPPED", ("memcpy*", "rep_movs", "jiffies"))
    with pytest.raises(Failure, match="no function rep_movs, jiffies; correct SKIPPED in transfers.py"):
        transfers.skipped(SYSTEM_MAP)


def said(core: str = "rust", **changed: Any) -> list[str]:
    """What the guest tells when all is well, but for what is changed in the second repetition of the first load."""
    results = [
        {"repetition": repetition, "place": place, "mode": mode, "writes": WRITES, "pages": WRITES * (mode != "dontcache")}
        for repetition in range(transfers.REPETITIONS + 1)
        for place in transfers.PLACES
        for mode in transfers.MODES
    ]
    results[len(transfers.PLACES) * len(transfers.MODES)] |= changed
    return [json.dumps(line) for line in ({"core": core}, *results)]


LOADS = len(said()) - 1


def counted(number: int = LOADS, empty: int | None = None) -> Iterator[list[Transfers]]:
    """A region for each load. Each repetition has one transfer more than the one before."""
    for load in range(number):
        repetition = load // (len(transfers.PLACES) * len(transfers.MODES))
        yield [] if load == empty else [Transfers(WRITES + repetition, WRITES, "lock", HEAP), Transfers(1, 0, "rare", PAGE)]


def accept(said_: list[str] | None = None, counted_: Iterator[list[Transfers]] | None = None) -> transfers.Runs:
    return transfers.accept("rust", said_ or said(), counted_ or counted(), SYMBOLS)


def test_the_first_run_is_thrown_away() -> None:
    runs = accept()
    assert len(runs) == len(transfers.PLACES) * len(transfers.MODES)
    for part in runs.values():
        more = [round(run.transfers * WRITES) - WRITES - 1 for run in part]
        assert more == list(range(1, transfers.REPETITIONS + 1))


def test_the_hottest_line_and_hot_lines() -> None:
    run = transfers.Run.of(100, [heap(a=100), heap(b=120), Line("jiffies", Counter(c=200))])
    assert (run.hottest.kind, run.hot) == ("jiffies", 2), "the line with most transfers is not handed over"
    assert transfers.Run.of(121, [heap(a=100), heap(b=121)]).hot == 0


@pytest.mark.parametrize(
    ("said_", "counted_", "words"),
    [
        (said("c"), counted(), "active core was c, not rust"),
        ([], counted(), "active core was unknown"),
        (said()[:-1], counted(), f"of {LOADS} loads the guest ran {LOADS - 1}"),
        (said(place="device"), counted(), f"of {LOADS} loads the guest ran {LOADS}"),
        (said(), counted(LOADS - 1), f"of {LOADS} loads the plugin counted {LOADS - 1}"),
        (said(), counted(0), f"of {LOADS} loads the plugin counted 0"),
        (said(), counted(LOADS + 1), f"of {LOADS} loads the plugin counted {LOADS + 1}"),
        (said(), counted(empty=7), "the plugin counted no transfer"),
        (said(writes=WRITES - 1), counted(), f"the writers wrote {WRITES - 1} times"),
        (said(pages=0), counted(), "separate, buffered: 0 pages were cached"),
    ],
)
def test_what_proves_nothing_is_refused(said_: list[str], counted_: Iterator[list[Transfers]], words: str) -> None:
    with pytest.raises(Failure, match=words):
        transfers.accept("rust", said_, counted_, SYMBOLS)


def test_pages_that_stay_are_refused_of_the_rust_core_only() -> None:
    lines = [json.dumps(json.loads(line) | {"pages": WRITES}) if "repetition" in line else line for line in said()]
    with pytest.raises(Failure, match=f"separate, dontcache: {WRITES} pages were cached"):
        accept(lines)
    lines[0] = json.dumps({"core": "c"})
    assert transfers.accept("c", lines, counted(), SYMBOLS)


RESULT = emulated.VmResult(
    0, b"", b"", Path("console"), "tcg", ["qemu", "-accel", "tcg,thread=multi"], "10", "rust", "7.3.4", 0, 1.0
)


def test_another_accelerator_is_refused() -> None:
    transfers.prove(RESULT)
    for wrong in ({"accel": "kvm"}, {"qemu_command": ["qemu", "-accel", "tcg,thread=single"]}):
        with pytest.raises(Failure, match="the accelerator was"):
            transfers.prove(dataclasses.replace(RESULT, **wrong))


@pytest.mark.parametrize("cpus", [0, 1, 3, 16])
def test_other_numbers_of_cpus_are_refused(cpus: int) -> None:
    with pytest.raises(Failure, match="CPUS is .*; give 2, 4 or 8") as refused:
        transfers.main(cpus)
    assert refused.value.status == 2


def document(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(price, "demangled", lambda names: {name: f"short {name}" for name in names})
    regions = [
        [Transfers(count, WRITES // 4 * (function == "drop"), function, HEAP), Transfers(WRITES // 2, 0, "_RNv", PAGE)]
        for _ in range(transfers.REPETITIONS + 1)
        for _ in transfers.PLACES
        for count, function in ((WRITES, "lock"), (2 * WRITES, "lock"), (5 * WRITES, "drop"))
    ]
    figures = transfers.describe(accept(counted_=iter(regions)))
    setup = {"cpus": CPUS, "size": 4096, "bytes": 32 << 20, "repetitions": 5, "skipped": ["memcpy*"], "hot": 0.5}
    setup |= {"date": "2026-11-27 12:00", "command": "make price CPUS=2", "revision": "abc", "code": "def"}
    setup |= {"kernel": "7.3.4", "qemu": "10", "accelerator": "tcg"}
    return {"setup": setup, "cores": dict.fromkeys(("c", "rust"), figures)}


def test_figures_are_per_write(monkeypatch: pytest.MonkeyPatch) -> None:
    place = document(monkeypatch)["cores"]["rust"]["one"]
    assert place["functions"] == {"drop": [0, 0, 5], "lock": [1, 2, 0], "short _RNv": [0.5, 0.5, 0.5]}
    by_functions = {tuple(group["functions"]): group for group in place["lines"]}
    assert by_functions["lock",]["transfers"] == [1, 2, 0]
    assert by_functions["drop",]["lines"] == [0, 0, 1]
    assert place["loads"]["dontcache"]["hottest"]["transfers"] == 5
    assert place["loads"]["early"]["transfers"] == [2.5] * transfers.REPETITIONS


@pytest.mark.parametrize(
    ("handovers", "lines", "is_shown"),
    [
        ([0.4, 0.4, 0.5], [1, 1, 1], True),
        ([0.4, 0.4, 0.4], [1, 1, 1], False),
        ([0.4, 0.6, 0.6], [1, 1, 1], False),
        ([0.6, 0.4, 0.6], [1, 1, 1], False),
        ([0.0, 0.0, 1.6], [0, 0, 4], False),
        ([0.0, 0.0, 2.0], [0, 0, 4], True),
    ],
)
def test_lines_that_are_hot_with_dontcache_only(
    monkeypatch: pytest.MonkeyPatch, handovers: list[float], lines: list[float], is_shown: bool
) -> None:
    found = document(monkeypatch)
    group = {"kind": "counter", "functions": ["count"], "transfers": [9, 9, 9], "handovers": handovers, "lines": lines}
    found["cores"]["rust"]["one"]["lines"].append(group)
    hot = transfers_page.page([found]).partition("hot with DONTCACHE only")[2].partition("###")[0]
    assert ("one file, xfs | C |" in hot, "| `counter: count` |" in hot) == (is_shown, is_shown)
