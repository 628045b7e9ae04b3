# SPDX-License-Identifier: GPL-2.0
"""Measures overwrites of cached folios: their cost, and whether it depends on the place in the folio.

A row is a number of the guest's program: "BLOCK CALL SIZE PLACE", "BLOCK curve OFFSET" or "BLOCK order ORDER
PLACE". Rows that differ only in the place in the folio are a series. The first row of a series is at the
folio's start.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import Failure
from .contenders import CORES

BLOCKS = (4096, 1024)
CALLS = ("write", "pwrite", "writev", "io_uring")
SIZES = (1 << 10, 10 << 10, 100 << 10)
PLACES = ("start", "middle", "end")
ORDERS = range(10)
FOLIO = 4096 << ORDERS[-1]
OFFSETS = (*(step * FOLIO // 32 + step % 4 * 5120 for step in range(32)), FOLIO - 1024)

RING_LIMIT = 1.003
"""What Rust may cost in a row of io_uring, times C. ext4 takes no buffered write that must not wait, so a thread of the kernel writes, and two
task switches are counted, too. Of the same write at the start of a folio C takes 8585 instructions on one file
system and 8609 on the other, without its walk being in it: what is nobody's differs by 0.3 %."""

FLAT = {"4096": 2.5, "1024": 4.0}
"""What a write may cost anywhere in a folio of 2 MiB, times what it costs at its start, by the size of a block. The walk
follows the ring of 512 or 2048 buffers to the range, in three instructions for each."""

Figures = Mapping[str, float]

SERIES: dict[str, Sequence[str]] = {}
"""The places by the name of the series."""
for _block in BLOCKS:
    SERIES |= {f"{_block} {call} {size}": PLACES for call in CALLS for size in SIZES}
    SERIES[f"{_block} curve"] = [str(offset) for offset in OFFSETS]
    SERIES |= {f"{_block} order {order}": PLACES for order in ORDERS}
ROWS = [f"{name} {place}" for name, places in SERIES.items() for place in places]

LIMITS = {row: RING_LIMIT for row in ROWS if row.split()[1] == "io_uring"}


def parse(outputs: Mapping[str, Sequence[str]], core: str) -> dict[str, float]:
    """Instructions of every row, from the program's lines by block size; all must be there."""
    figures: dict[str, float] = {}
    for block in BLOCKS:
        head, *lines = outputs.get(str(block)) or [""]
        if head != f"block {block}":
            raise Failure(f"the overwrites of the {core} core had no blocks of {block} bytes; nothing is reported")
        rows = (f"{block} {line}".rpartition(" ") for line in lines)
        figures |= {row: float(value) for row, _, value in rows if value.isdecimal()}
    if missing := [row for row in ROWS if not figures.get(row)]:
        raise Failure(f"the overwrites of the {core} core lack {missing[0]}; nothing is reported")
    return figures


def worst(figures: Figures, name: str) -> tuple[float, str]:
    """The highest cost of a series, times that at the start of the folio, and where it is."""
    start = figures[f"{name} {SERIES[name][0]}"]
    return max((figures[f"{name} {place}"] / start, place) for place in SERIES[name])


def document(figures: Mapping[str, Figures]) -> dict[str, Any]:
    """All of it, for micro.json."""
    ratios = {row: figures["rust"][row] / figures["c"][row] for row in ROWS}
    highest = {core: {name: worst(figures[core], name)[0] for name in SERIES} for core in CORES}
    return {"figures": figures, "ratios": ratios, "worst_over_start": highest}
