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
from rust_writeback.bench.cache_lines import Line, Symbols
from rust_writeback.errors import Failure
from rust_writeback.vm import emulated

SYSTEM_MAP = """\
ffffffff81000000 T do_write
ffffffff81000100 t ktime_get
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
PLACES, MODES = list(transfers_page.PLACES), list(transfers_page.MODES)
KINDS = len(PLACES) * len(MODES)
LOADS = KINDS * (transfers.REPETITIONS + 1)
WRITES = transfers.WRITES


def test_regions_are_read() -> None:
    said = ["region", f"3 1 a {HEAP:x}", f"2 2 b {HEAP:x}", f"1 0 a {HEAP + 64:x}", "region", "region", f"1 1 f {PAGE:x}"]
    (one, other), nothing, (page,) = cache_lines.regions((f"{line}\n" for line in said), SYMBOLS)
    assert (one.functions, one.handovers, one.transfers) == (Counter(a=3, b=2), 3, 5)
    assert (other.functions, other.handovers) == (Counter(a=1), 0)
    assert (nothing, page.kind) == ([], "struct page")


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        (0xFFFFFFFF82000000, "jiffies, counter"),
        (0xFFFFFFFF82000040, "counter+0x30"),
        (0xFFFFFFFF82000100, "table"),
        (HEAP, "heap or per-CPU"),
        (STACK, "stack or vmalloc"),
        (0xFFFFFFFF82001000, "other"),
    ],
)
def test_a_line_has_a_name(address: int, kind: str) -> None:
    assert SYMBOLS.kind(address) == kind


def heap(**functions: int) -> Line:
    return Line(cache_lines.HEAP, Counter(functions), sum(functions.values()) // 2)


def sums(*lines: Line) -> cache_lines.Sums:
    return cache_lines.summed((line.key, line) for line in lines)


def test_lines_of_the_heap_are_known_by_their_functions_and_others_by_what_they_are() -> None:
    # A function that hardly ever transfers the line does not make another line of it.
    lines = [heap(lock=50, unlock=50), heap(lock=30, unlock=70, rare=1), heap(lock=50)]
    lines += [Line("struct page", Counter(a=1)), Line("struct page", Counter(b=2))]
    found = [(line.number, line.transfers) for line in sums(*lines).values()]
    assert found == [(2, 201), (1, 50), (2, 3)]


def test_alike_lines_of_different_loads_are_in_one_group() -> None:
    shared, freed = heap(lock=60, spin=30, owner=10), heap(free=40)
    too, other = heap(lock=70, owner=30), heap(free=20, alloc=60)
    group_of = cache_lines.groups([sums(shared, freed), sums(too, other)])
    assert group_of[shared.key] == group_of[too.key]
    assert len(set(group_of.values())) == 3, "the line that is allocated as well is another one"


def test_what_is_skipped_is_a_function_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "SKIPPED", ("memcpy*", "ktime_*"))
    assert transfers.skipped(SYSTEM_MAP) == ["ktime_get", "memcpy_orig"]
    monkeypatch.setattr(transfers, "SKIPPED", ("memcpy*", "rep_movs", "jiffies"))
    with pytest.raises(Failure, match="no function rep_movs, jiffies; correct SKIPPED in transfers.py"):
        transfers.skipped(SYSTEM_MAP)


def said(core: str = "rust", **changed: Any) -> list[str]:
    """What the guest tells when all is well, but for what is changed in the second repetition of the first load."""
    results = [
        {"repetition": repetition, "place": place, "mode": mode, "writes": WRITES, "pages": WRITES * (mode != "dontcache")}
        for repetition in range(transfers.REPETITIONS + 1)
        for place in PLACES
        for mode in MODES
    ]
    results[KINDS] |= changed
    return [json.dumps(line) for line in ({"core": core}, *results)]


def counted(number: int = LOADS, empty: int | None = None) -> Iterator[list[Line]]:
    """A region for each load. Each repetition has one transfer more than the one before."""
    for load in range(number):
        yield [] if load == empty else [heap(lock=WRITES + load // KINDS), Line("struct page", Counter(rare=1))]


def test_the_first_run_is_thrown_away() -> None:
    runs = transfers.accept("rust", said(), counted())
    assert len(runs) == KINDS
    for part in runs.values():
        more = [sum(line.transfers for line in run.values()) - WRITES - 1 for run in part]
        assert more == list(range(1, transfers.REPETITIONS + 1))


@pytest.mark.parametrize(
    ("lines", "regions", "words"),
    [
        (said("c"), counted(), "active core was c, not rust"),
        ([], counted(), "active core was unknown"),
        (said()[:-1], counted(), f"of {LOADS} loads the guest ran {LOADS - 1}"),
        (said(place="device"), counted(), f"of {LOADS} loads the guest ran {LOADS}"),
        (said(), counted(LOADS - 1), f"of {LOADS} loads the plugin counted {LOADS - 1}"),
        (said(), counted(LOADS + 1), f"of {LOADS} loads the plugin counted {LOADS + 1}"),
        (said(), counted(empty=7), "the plugin counted no transfer"),
        (said(writes=WRITES - 1), counted(), f"the writers wrote {WRITES - 1} times"),
        (said(pages=0), counted(), "separate, buffered: 0 pages were cached"),
    ],
)
def test_what_proves_nothing_is_refused(lines: list[str], regions: Iterator[list[Line]], words: str) -> None:
    with pytest.raises(Failure, match=words):
        transfers.accept("rust", lines, regions)


def test_pages_that_stay_are_refused_of_the_rust_core_only() -> None:
    lines = [json.dumps(json.loads(line) | {"pages": WRITES}) if "repetition" in line else line for line in said()]
    with pytest.raises(Failure, match=f"separate, dontcache: {WRITES} pages were cached"):
        transfers.accept("rust", lines, counted())
    assert transfers.accept("c", [json.dumps({"core": "c"}), *lines[1:]], counted())


def test_another_accelerator_is_refused() -> None:
    command = ["qemu", "-accel", "tcg,thread=multi"]
    result = emulated.VmResult(0, b"", b"", Path("console"), "tcg", command, "10", "rust", "7.3.4", 0, 1.0)
    transfers.prove(result)
    for wrong in ({"accel": "kvm"}, {"qemu_command": ["qemu", "-accel", "tcg,thread=single"]}):
        with pytest.raises(Failure, match="the accelerator was"):
            transfers.prove(dataclasses.replace(result, **wrong))


def test_another_number_of_cpus_is_refused() -> None:
    with pytest.raises(Failure, match="CPUS is .*; give 2, 4 or 8") as refused:
        transfers.main(3)
    assert refused.value.status == 2


def test_figures_are_per_write_and_the_page_has_lines_that_are_hot_with_dontcache_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "demangled", lambda names: {name: f"short {name}" for name in names})
    regions = [
        [Line(cache_lines.HEAP, Counter({function: count}), handovers), Line("jiffies", Counter(_RNv=WRITES // 2), 0)]
        for _ in range(transfers.REPETITIONS + 1)
        for _ in PLACES
        for count, function, handovers in ((WRITES, "lock", 9), (2 * WRITES, "lock", 9), (5 * WRITES, "drop", WRITES // 2))
    ]
    figures = transfers.describe(transfers.accept("rust", said(), iter(regions)))
    groups = {group["functions"][0]: group for group in figures["one"]["lines"]}
    assert groups["lock"]["transfers"] == [1, 2, 0] and groups["drop"]["lines"] == [0, 0, 1]
    assert groups["short _RNv"]["transfers"] == [0.5, 0.5, 0.5]
    assert figures["one"]["loads"]["early"]["transfers"] == [2.5] * transfers.REPETITIONS

    def hot(**changed: list[float]) -> list[str]:
        groups["drop"] |= changed
        setup = dict.fromkeys(("command", "date", "revision", "code", "kernel", "qemu", "accelerator"), "x")
        numbers = {"cpus": 2, "size": 4096, "bytes": 32 << 20, "repetitions": 5, "skipped": ["memcpy*"], "hot": 0.5}
        page = transfers_page.page([{"setup": setup | numbers, "cores": dict.fromkeys(("c", "rust"), figures)}])
        part = page.partition("hot with DONTCACHE only")[2].partition("###")[0]
        return [line.split("`")[1] for line in part.splitlines() if line.startswith("| one file")]

    assert hot() == ["heap or per-CPU: drop"] * 2
    assert hot(handovers=[0.0, 0.6, 0.6]) == []
    assert hot(handovers=[0.0, 0.0, 1.6], lines=[0, 0, 4]) == []
