# SPDX-License-Identifier: GPL-2.0
"""The micro-benchmarks: what is refused, what is judged, and by which name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rust_writeback import paths
from rust_writeback.arch import ARM64, X86
from rust_writeback.bench import micro, overwrite
from rust_writeback.build import kernel
from rust_writeback.vm import emulated
from rust_writeback.errors import Failure


OF_RUST = {"look": 1000, "files": dict(zip(micro.FILES, (1000, 10_000), strict=True))}
"""What only the Rust core is asked."""


def document(core: str = "rust") -> dict[str, Any]:
    """What the guest's driver says when all is well, and everything costs 1000."""
    outputs: dict[str, list[str]] = {str(block): [f"block {block}"] for block in overwrite.BLOCKS}
    for row in overwrite.ROWS:
        block, name = row.split(" ", 1)
        outputs[block].append(f"{name} 1000")
    lines = [f"{name} 50" for name in micro.FIGURES]
    return {"core": core, "lines": lines, "overwrite": outputs, "rounds": dict.fromkeys(micro.ROUNDS, 1000), **OF_RUST}


ROUNDS = dict.fromkeys(micro.ROUNDS, 1000.0)
AT_ONCE = dict(zip(micro.FILES, (1000.0, 10_000.0), strict=True))
DEARER = micro.DEARER[X86]


def parse(said: Any, core: str = "rust") -> micro.Measured:
    return micro.parse(json.dumps(said).encode(), core)


def both(changed: dict[str, float] | None = None) -> dict[str, dict[str, float]]:
    """Rows of both cores, equal and flat but for those of Rust that are named."""
    figures = {core: parse(document(core), core).overwrites for core in micro.CORES}
    assert set(changed or {}) <= set(figures["rust"])
    figures["rust"].update(changed or {})
    return figures


def operations(rust: float = 50) -> dict[str, dict[str, float]]:
    return {"c": dict.fromkeys(micro.FIGURES, 50.0), "rust": dict.fromkeys(micro.FIGURES, rust)}


def test_all_is_read() -> None:
    measured = parse(document())
    assert set(measured.operations) == set(micro.FIGURES)
    assert list(measured.overwrites) == overwrite.ROWS


def test_another_core_is_refused() -> None:
    with pytest.raises(Failure, match="active core was c, not rust"):
        parse(document("c"))


@pytest.mark.parametrize("output", [b"", b"[]", b"{}", b'{"core": "rust", "lines": []}', b"nonsense"])
def test_nonsense_is_refused(output: bytes) -> None:
    with pytest.raises(Failure, match="printed nothing"):
        micro.parse(output, "rust")


def test_a_missing_operation_is_named() -> None:
    said = document()
    said["lines"].remove("consume 50")
    with pytest.raises(Failure, match="lacks consume;"):
        parse(said)
    said["lines"].append("consume 0")
    with pytest.raises(Failure, match="lacks consume;"):
        parse(said)


@pytest.mark.parametrize("row", overwrite.ROWS[::17])
def test_a_missing_row_is_named(row: str) -> None:
    said = document()
    block, name = row.split(" ", 1)
    said["overwrite"][block].remove(f"{name} 1000")
    with pytest.raises(Failure, match=f"lack {row};"):
        parse(said)


@pytest.mark.parametrize("outputs", [{}, {"4096": []}, {"4096": ["block 1024"]}])
def test_other_blocks_are_refused(outputs: dict[str, list[str]]) -> None:
    with pytest.raises(Failure, match="no blocks of 4096 bytes"):
        parse(document() | {"overwrite": outputs})


@pytest.mark.parametrize(
    "line",
    ["", "9", "pwrite 1024 start", "pwrite 1024 start 1000", "pwrite 1024 top 9", "pwrite 7 start 9", "order 10 end 9"],
)
def test_a_line_too_many_is_refused(line: str) -> None:
    said = document()
    said["overwrite"]["4096"].append(line)
    with pytest.raises(Failure, match=f"printed the line: {line};"):
        parse(said)


@pytest.mark.parametrize("value", ["0", "-5", "1e3", "many", "\u00b2"])
def test_a_cost_is_a_number(value: str) -> None:
    said = document()
    said["overwrite"]["1024"][1] = f"pwrite 1024 start {value}"
    with pytest.raises(Failure, match="the overwrites of the rust core printed the line"):
        parse(said)


def test_equal_and_flat_is_good() -> None:
    micro.judge(operations(), both(), ROUNDS, 1000, AT_ONCE, DEARER)
    micro.judge(operations(49), both({"4096 order 9 end": 999}), ROUNDS, 1000, AT_ONCE, DEARER)


def test_each_operation_has_its_own_limit() -> None:
    figures = operations()
    figures["rust"]["bio_first_in_a_while"] = figures["c"]["bio_first_in_a_while"] * 1.05
    micro.judge(figures, both(), ROUNDS, 1000, AT_ONCE, DEARER)
    figures["rust"]["bio_first_in_a_while"] = figures["c"]["bio_first_in_a_while"] * 1.07
    with pytest.raises(Failure, match=r"than C: bio_first_in_a_while 1\.070 \(at most 1\.06\)$"):
        micro.judge(figures, both(), ROUNDS, 1000, AT_ONCE, DEARER)


def test_the_switches_of_io_uring_may_differ_a_little() -> None:
    micro.judge(operations(), both({"4096 io_uring 1024 start": 1002}), ROUNDS, 1000, AT_ONCE, DEARER)
    with pytest.raises(Failure, match="than C: 4096 io_uring 1024 start 1.004"):
        micro.judge(operations(), both({"4096 io_uring 1024 start": 1004}), ROUNDS, 1000, AT_ONCE, DEARER)


def test_a_dearer_row_is_named() -> None:
    with pytest.raises(Failure, match=r"than C: 1024 writev 10240 middle 1\.001 \(at most 1\.000\)$") as caught:
        micro.judge(operations(), both({"1024 writev 10240 middle": 1001}), ROUNDS, 1000, AT_ONCE, DEARER)
    assert "place" not in str(caught.value)


@pytest.mark.parametrize("row", ["4096 pwrite 1024 end", "1024 curve 1119232", "1024 order 3 middle"])
def test_a_dearer_place_is_named(row: str) -> None:
    figures, limit = both(), overwrite.FLAT[row.split()[0]]
    figures["c"][row] = figures["rust"][row] = int(1000 * limit) + 1
    with pytest.raises(Failure, match=f"place: {row} {limit:.2f};") as caught:
        micro.judge(operations(), figures, ROUNDS, 1000, AT_ONCE, DEARER)
    assert "than C" not in str(caught.value)
    figures["c"][row] = figures["rust"][row] = int(1000 * limit)
    micro.judge(operations(), figures, ROUNDS, 1000, AT_ONCE, DEARER)


def test_c_may_be_uneven() -> None:
    figures = both()
    figures["c"]["4096 order 9 end"] = 20000
    micro.judge(operations(), figures, ROUNDS, 1000, AT_ONCE, DEARER)


@pytest.mark.parametrize(
    ("rust", "end", "words"),
    [(50, 1000, None), (49, 999, None), (51, 1000, "than C: account_dirtied"), (50, 2501, "place: 4096 order 9 end")],
)
def test_the_command_writes_all_then_judges(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    rust: int,
    end: int,
    words: str | None,
) -> None:
    def measure(core: str, _variant: object) -> tuple[micro.Measured, emulated.VmResult]:
        measured = parse(document(core), core)
        measured.overwrites["4096 order 9 end"] = end
        if core == "rust":
            measured.operations["account_dirtied"] = rust
        return measured, emulated.VmResult(0, b"", b"", tmp_path, "icount", [], "10.0", core, "7.3.4", 0, 5.0)

    monkeypatch.setattr(micro, "measure", measure)
    monkeypatch.setattr(kernel, "ensure", lambda variant: None)
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    if words:
        with pytest.raises(Failure, match=words):
            micro.main([])
    else:
        assert micro.main([]) == 0
    assert "Rust/C" in capsys.readouterr().out
    written = json.loads((tmp_path / "report" / "micro.json").read_text())
    assert written["figures"]["rust"]["account_dirtied"] == rust
    assert written["overwrite"]["figures"]["c"]["4096 order 9 end"] == end


def test_a_round_that_looks_at_others_is_told() -> None:
    few, many = micro.ROUNDS
    micro.judge(operations(), both(), {few: 1000, many: 1100}, 1000, AT_ONCE, DEARER)
    with pytest.raises(Failure, match=r"1\.11 times as much beside 100000 dirty inodes as beside 10"):
        micro.judge(operations(), both(), {few: 1000, many: 1110}, 1000, AT_ONCE, DEARER)


def test_no_round_is_no_cheap_round() -> None:
    with pytest.raises(Failure, match="had no round"):
        parse(document() | {"rounds": dict.fromkeys(micro.ROUNDS, 0)})


def test_a_lock_that_is_held_for_long_is_told() -> None:
    micro.judge(operations(), both(), ROUNDS, micro.LOOK_LIMIT, AT_ONCE, DEARER)
    with pytest.raises(Failure, match="lists takes 100001 instructions; the limit is 100000$"):
        micro.judge(operations(), both(), ROUNDS, micro.LOOK_LIMIT + 1, AT_ONCE, DEARER)


@pytest.mark.parametrize("look", [0, None, "long"])
def test_a_look_of_rust_is_told(look: Any) -> None:
    with pytest.raises(Failure, match="had no round|printed nothing"):
        parse(document() | {"look": look})
    assert parse(document("c") | {"look": None}, "c").look is None


def test_many_files_that_cost_more_than_their_number_are_told() -> None:
    few, many = micro.FILES
    micro.judge(operations(), both(), ROUNDS, 1000, {few: 1000, many: 11_000}, DEARER)
    with pytest.raises(Failure, match=r"20000 files at once cost 11\.1 times what 2000 do; the limit is 11"):
        micro.judge(operations(), both(), ROUNDS, 1000, {few: 1000, many: 11_100}, DEARER)
    with pytest.raises(Failure, match="had no round"):
        parse(document() | {"files": {few: 1000, many: 0}})
    with pytest.raises(Failure, match="printed nothing"):
        parse(document() | {"files": None})
    assert parse(document("c") | {"files": None}, "c").files == {}


def test_another_architecture_has_limits_of_its_own() -> None:
    figures = operations()
    figures["rust"]["account_dirtied"] = 52.0
    micro.judge(figures, both(), ROUNDS, 1000, AT_ONCE, micro.DEARER[ARM64])
    with pytest.raises(Failure, match="account_dirtied 1.040 .at most 1.00"):
        micro.judge(figures, both(), ROUNDS, 1000, AT_ONCE, DEARER)
    assert set(micro.DEARER[ARM64]) <= set(micro.FIGURES)
