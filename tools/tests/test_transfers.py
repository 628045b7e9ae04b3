# SPDX-License-Identifier: GPL-2.0
"""make price CPUS=...: what the plugin says is read, and what proves nothing is refused."""

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rust_writeback.bench import price, transfers
from rust_writeback.bench.transfers import Region
from rust_writeback.errors import Failure
from rust_writeback.vm import emulated

PLACES, MODES = list(transfers.PLACES), list(transfers.MODES)
KINDS = len(PLACES) * len(MODES)
LOADS = KINDS * (transfers.REPETITIONS + 1)
WRITES = transfers.WRITES


def test_regions_are_read() -> None:
    half = WRITES // 2
    said = f"region\n{half} {half - 1} a f00\n2 1 b f00\n1 {half - 1} a f40\n1 1 c f40\nregion\nregion\n1 1 f f80\n"
    one, nothing, other = transfers.regions(said.splitlines(keepends=True))
    assert (one.transfers, one.handovers) == (Counter(a=half + 1, b=2, c=1), Counter(a=2 * half - 2, b=1, c=1))
    # The functions together hand two of the lines over at every second write.
    assert (one.hot, other.hot) == (2, 0)
    assert (nothing, other.transfers) == (Region(), Counter(f=1))


def said(**changed: Any) -> list[str]:
    """What the guest tells when all is well, but for what is changed in the second repetition of the first load."""
    results = [
        {"repetition": repetition, "place": place, "mode": mode, "writes": WRITES, "pages": WRITES * (mode != "dontcache")}
        for repetition in range(transfers.REPETITIONS + 1)
        for place in PLACES
        for mode in MODES
    ]
    results[KINDS] |= changed
    return [json.dumps(line) for line in ({"core": "rust"}, *results)]


def counted(number: int = LOADS, empty: int | None = None) -> list[Region]:
    """A region for each load."""
    return [Region() if load == empty else Region(Counter(lock=WRITES)) for load in range(number)]


@pytest.mark.parametrize(
    ("lines", "regions", "words"),
    [
        ([], counted(), "active core was unknown"),
        (said(place="device"), counted(), f"of {LOADS} loads the guest ran {LOADS}"),
        (said(), counted(LOADS + 1), f"of {LOADS} loads the plugin counted {LOADS + 1}"),
        (said(), counted(empty=7), "the plugin counted no transfer"),
        (said(writes=WRITES - 1), counted(), f"the writers wrote {WRITES - 1} times"),
        (said(pages=0), counted(), "separate, buffered: 0 pages were cached"),
    ],
)
def test_a_measurement_that_did_not_exercise_its_subject_is_refused(lines: list[str], regions: list[Region], words: str) -> None:
    with pytest.raises(Failure, match=words):
        transfers.accept("rust", lines, regions)


def test_pages_that_stay_are_refused_of_the_rust_core_only() -> None:
    lines = [json.dumps(json.loads(line) | {"pages": WRITES}) if "repetition" in line else line for line in said()]
    with pytest.raises(Failure, match=f"separate, dontcache: {WRITES} pages were cached"):
        transfers.accept("rust", lines, counted())
    assert transfers.accept("c", [json.dumps({"core": "c"}), *lines[1:]], counted())


def test_another_accelerator_is_refused() -> None:
    for accelerator, threads, good in (("tcg", "multi", True), ("kvm", "multi", False), ("tcg", "single", False)):
        command = ["qemu", "-accel", f"tcg,thread={threads}"]
        result = emulated.VmResult(0, b"", b"", Path("console"), accelerator, command, "10", "rust", "7.3.4")
        with contextlib.nullcontext() if good else pytest.raises(Failure, match="the accelerator was"):
            transfers.prove(result)


def test_figures_are_per_write_and_the_first_run_is_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "MOST", 2)
    monkeypatch.setattr(price, "demangled", lambda names: {name: f"short {name}" for name in names})
    loads = [Region(Counter(lock=WRITES, _RNv=WRITES // 2)), Region(Counter(lock=2 * WRITES))]
    loads.append(Region(Counter(drop=5 * WRITES), Counter(drop=WRITES), hot=3))
    regions = [Region(Counter(lock=9))] * KINDS + loads * len(PLACES) * transfers.REPETITIONS
    figures = transfers.describe(transfers.accept("rust", said(), regions))["one"]
    most = [("drop", [[0, 0, 5], [0, 0, 1]]), ("short _RNv", [[0.5, 0, 0], [0, 0, 0]])]
    assert list(figures["functions"].items()) == most
    assert figures["loads"]["buffered"]["transfers"] == [1.5] * transfers.REPETITIONS
