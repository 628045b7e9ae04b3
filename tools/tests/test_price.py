# SPDX-License-Identifier: GPL-2.0
"""make price: what is accepted, what is judged, and what the page says."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rust_writeback.bench import price
from rust_writeback.check import price as gate
from rust_writeback.check.lines import fingerprint
from rust_writeback.errors import Failure

BUFFERED = price.Cell("ext4", "new", "4k", "fits", "buffered")
DONTCACHE = replace(BUFFERED, mode="dontcache")
LARGER = replace(BUFFERED, memory="larger")


def said(*cells: price.Cell, core: str = "rust", available: int = 100, **pages: int) -> list[str]:
    """What the guest says when all is well, or with so many pages in the cache for a mode."""
    lines: list[dict[str, Any]] = [{"core": core, "available": available}]
    for cell in cells:
        stays = pages.get(cell.mode, cell.bytes // 4096 if cell.mode == "buffered" else 0)
        lines.append({"name": cell.name, "writes": 1, "pages": stays})
    return [json.dumps(line) for line in lines]


def measured(cell: price.Cell, *totals: int, stays: bool = False) -> price.Measured:
    return price.Measured(cell, [{"f": total * cell.bytes // price.MIB} for total in totals], stays)


def found(cell: price.Cell, c: tuple[int, ...], rust: tuple[int, ...], c_stays: bool = False) -> price.Results:
    return {"c": {cell.name: measured(cell, *c, stays=c_stays)}, "rust": {cell.name: measured(cell, *rust)}}


def test_regions_are_read_without_the_drive() -> None:
    text = "region\n5 add_region\n7 null_queue_rq\nregion\n3 memcpy_orig\n2 memcpy_to_folio\n"
    assert price.regions(text) == [{"add_region": 5}, {"memcpy_to_folio": 2}]


def test_a_cell_that_wrote_and_dropped_is_accepted() -> None:
    accepted = price.accept("rust", [BUFFERED, DONTCACHE], said(BUFFERED, DONTCACHE), [{"f": 64}, {"f": 32}])
    # 32 MiB were written.
    assert [one.total for one in accepted.values()] == [2, 1]
    assert [one.stays for one in accepted.values()] == [True, False]


@pytest.mark.parametrize(
    ("words", "counted", "why"),
    [
        (said(BUFFERED, core="c"), [{"f": 1}], "the active core was c"),
        (said(), [], "the guest ran 0"),
        (said(BUFFERED), [], "the plugin counted 0"),
        (said(DONTCACHE), [{"f": 1}], "the guest ran 1"),
        (said(BUFFERED), [{}], "no instruction"),
        (said(BUFFERED, buffered=0), [{"f": 1}], "0 pages were cached"),
    ],
)
def test_a_cell_that_did_not_write_or_drop_is_refused(words: list[str], counted: list[price.Functions], why: str) -> None:
    with pytest.raises(Failure, match=why):
        price.accept("rust", [BUFFERED], words, counted)


def test_pages_that_stay_are_refused_of_rust_only() -> None:
    assert price.accept("c", [DONTCACHE], said(DONTCACHE, core="c", dontcache=8192), [{"f": 1}])[DONTCACHE.name].stays
    with pytest.raises(Failure, match="8192 pages were cached"):
        price.accept("rust", [DONTCACHE], said(DONTCACHE, dontcache=8192), [{"f": 1}])


def test_a_file_that_is_not_larger_than_memory_is_refused() -> None:
    assert price.accept("rust", [LARGER], said(LARGER, available=128), [{"f": 1}])
    with pytest.raises(Failure, match="129 MiB of memory available"):
        price.accept("rust", [LARGER], said(LARGER, available=129), [{"f": 1}])


@pytest.mark.parametrize(
    ("cell", "c", "rust", "count"),
    [
        (BUFFERED, (100_000,), (100_200,), 0),
        (BUFFERED, (100_000,), (100_201,), 1),
        (DONTCACHE, (100_000,), (100_000,), 0),
        (DONTCACHE, (100_000,), (100_001,), 1),
        # What one guest of three does not show is chance.
        (LARGER, (100_000, 100_000, 100_000), (101_000, 101_000, 100_000), 0),
        (LARGER, (100_000, 100_000, 100_000), (101_000, 101_000, 101_000), 1),
    ],
)
def test_rust_is_judged_beside_c(cell: price.Cell, c: tuple[int, ...], rust: tuple[int, ...], count: int) -> None:
    assert len(price.judge(found(cell, c, rust))) == count


def test_c_that_does_less_is_no_measure() -> None:
    assert price.judge(found(DONTCACHE, (100,), (200,), c_stays=True)) == []


def test_instructions_of_the_allocator_are_counted_but_not_limited() -> None:
    functions = {"f": 32 * 1000, "__rmqueue_pcplist": 32 * 50}
    (one,) = price.accept("rust", [BUFFERED], said(BUFFERED), [functions]).values()
    assert (one.total, one.judged()) == (1050, [1000])


def test_the_mean_of_guests() -> None:
    mean = measured(LARGER, 100, 200, 600)
    assert (mean.total, mean.per_mib()) == (300, {"f": 300})


@pytest.mark.parametrize(
    ("results", "before", "said"),
    [
        (found(DONTCACHE, (2000,), (1000,)), 991, ""),
        (found(DONTCACHE, (2000,), (1000,)), 990, "1000: 1.010 times what tools/results/price.json says"),
        (found(DONTCACHE, (2000,), (1000,)), None, "1000: not in tools/results/price.json; run: make price"),
        (found(DONTCACHE, (1000,), (1003,)), 1003, "1003: 1.0030 (at most 1.000)"),
    ],
)
def test_the_gate_compares_with_c_and_with_the_committed_page(results: price.Results, before: int | None, said: str) -> None:
    counts = gate.judged(results, {"cells": {DONTCACHE.name: {"rust": {"instructions": before}}}})
    assert (counts.passed, counts.problems) == ((0, [f"price: {DONTCACHE.name}: {said}"]) if said else (1, []))


def test_the_cells_of_other_code_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {BUFFERED.name: {"f": 9, "g": 5}}
    monkeypatch.setattr(price, "RESULT", tmp_path / "price.json")
    for code in (fingerprint(), "0"):
        price.RESULT.write_text(json.dumps({"code": code, "c": cells, "rust": cells}))
        with contextlib.nullcontext() if code != "0" else pytest.raises(Failure, match="no complete result"):
            price.difference(f"{BUFFERED.name}/c", f"{BUFFERED.name}/rust")
