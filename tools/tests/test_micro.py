# SPDX-License-Identifier: GPL-2.0
"""The micro-benchmarks: what is refused, what is judged, and by which name."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rust_writeback import paths
from rust_writeback.arch import X86
from rust_writeback.bench import micro, overwrite
from rust_writeback.build import kernel
from rust_writeback.vm import emulated
from rust_writeback.errors import Failure


def document(core: str = "rust") -> dict[str, Any]:
    """What the guest's driver says when all is well, and everything costs 1000."""
    outputs: dict[str, list[str]] = {str(block): [f"block {block}"] for block in overwrite.BLOCKS}
    for row in overwrite.ROWS:
        block, name = row.split(" ", 1)
        outputs[block].append(f"{name} 1000")
    rounds, files = dict.fromkeys(micro.ROUNDS, 1000), dict(zip(micro.FILES, (1000, 10_000), strict=True))
    lines = [f"{name} 50" for name in micro.FIGURES]
    return {"core": core, "lines": lines, "overwrite": outputs, "rounds": rounds, "look": 1000, "files": files}


def parse(said: Any, core: str = "rust") -> micro.Measured:
    return micro.parse(json.dumps(said).encode(), core)


def judge(changed: dict[str, float]) -> None:
    """Judge two cores that are equal but for the changed figures, which are of Rust unless "c " precedes them."""
    equal = dict.fromkeys(micro.FIGURES, 50.0) | dict.fromkeys([*overwrite.ROWS, *micro.ROUNDS, "look", *micro.FILES], 1000.0)
    both = {"c": dict(equal), "rust": dict(equal)}
    for name, value in changed.items():
        core, row = ("c", name[2:]) if name.startswith("c ") else ("rust", name)
        assert row in equal
        both[core][row] = value
    measured = {core: micro.Measured(one, one, one, one["look"], one) for core, one in both.items()}
    micro.judge(micro.document(measured), micro.DEARER[X86])


def test_all_is_read() -> None:
    assert set(parse(document()).operations) == set(micro.FIGURES)
    # C has neither a look nor files.
    assert parse(document("c") | {"look": None, "files": None}, "c").files == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda said: said.clear(), "printed nothing"),
        (lambda said: said.update(core="c"), "active core was c, not rust"),
        (lambda said: said["lines"].remove("consume 50"), "lacks consume;"),
        (lambda said: said["lines"].append("consume 0"), "lacks consume;"),
        (lambda said: said["rounds"].update({"10": 0}), "had no round"),
        (lambda said: said["files"].update({"20000": 0}), "had no round"),
        (lambda said: said.update(look=0), "had no round"),
        (lambda said: said.update(overwrite={}), "no blocks of 4096 bytes"),
        (lambda said: said["overwrite"]["1024"].remove("order 9 end 1000"), "lack 1024 order 9 end;"),
        (lambda said: said["overwrite"]["1024"].append("order 9 end 0"), "lack 1024 order 9 end;"),
    ],
)
def test_a_wrong_document_is_refused(change: Callable[[dict[str, Any]], object], words: str) -> None:
    said = document()
    change(said)
    with pytest.raises(Failure, match=words):
        parse(said)


LAST = "4096 order 9 end"
AT_THE_LIMIT = {LAST: 2500, f"c {LAST}": 20_000}
"""As dear as Rust may be at this place; C may be uneven."""


@pytest.mark.parametrize(
    ("within", "beyond", "words"),
    [
        (dict.fromkeys(micro.FIGURES, 49) | {LAST: 999}, {"account_dirtied": 51}, "Rust/C of account_dirtied: 1.020"),
        ({"bio_first_in_a_while": 52.5}, {"bio_first_in_a_while": 53.5}, "bio_first_in_a_while: 1.070 (at most 1.060)"),
        # The task switches of io_uring differ a little.
        ({"4096 io_uring 1024 start": 1002}, {"4096 io_uring 1024 start": 1004}, "Rust/C of 4096 io_uring 1024 start: 1.004"),
        ({}, {"1024 writev 10240 middle": 1001}, "Rust/C of 1024 writev 10240 middle: 1.001 (at most 1.000)"),
        (AT_THE_LIMIT, AT_THE_LIMIT | {LAST: 2501}, f": {LAST}/start of the folio: 2.501 (at most 2.500)"),
        ({}, dict.fromkeys(("1024 curve 1119232", "c 1024 curve 1119232"), 4001), " 1119232/start of the folio: 4.001"),
        ({"100000": 1100}, {"100000": 1110}, "beside 100000/10 dirty inodes: 1.110 (at most 1.100)"),
        ({"20000": 11_000}, {"20000": 11_100}, "a round for 20000/2000 files: 11.100 (at most 11.000)"),
        ({"look": 100_000}, {"look": 100_001}, "a look at the flusher's lists: 100001.000 (at most 100000.000)"),
    ],
)
def test_only_rows_beyond_a_limit_are_reported(within: dict[str, float], beyond: dict[str, float], words: str) -> None:
    judge(within)
    with pytest.raises(Failure, match=re.escape(words)) as caught:
        judge(beyond)
    assert str(caught.value).count("(at most") == 1


def test_the_command_writes_all_then_judges(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def measure(core: str, _variant: object) -> tuple[micro.Measured, emulated.VmResult]:
        measured = parse(document(core), core)
        measured.operations["account_dirtied"] += core == "rust"
        return measured, emulated.VmResult(0, b"", b"", tmp_path, "icount", [], "10.0", core, "7.3.4")

    monkeypatch.setattr(micro, "measure", measure)
    monkeypatch.setattr(kernel, "ensure", lambda variant: None)
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    with pytest.raises(Failure, match="Rust/C of account_dirtied"):
        micro.main([])
    written = json.loads((tmp_path / "report" / "micro.json").read_text())
    assert written["figures"]["rust"]["account_dirtied"] == 51
