# SPDX-License-Identifier: GPL-2.0
"""Reads what the plugin counts with lines=on: transfers of cache lines, by line and function.

The address of a dynamic line differs from one load to the next. Such lines are grouped by their kind and by
the functions that transfer them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

LINE = 64
AREAS = (
    (0xFFFF888000000000, 0xFFFFC88000000000, "heap or per-CPU"),
    (0xFFFFC90000000000, 0xFFFFE90000000000, "stack or vmalloc"),
    (0xFFFFEA0000000000, 0xFFFFEB0000000000, "struct page"),
)
"""Parts of the kernel's half without KASLR: Documentation/arch/x86/x86_64/mm.rst."""
HEAP = AREAS[0][2]
OTHER = "other"

SHARE = 0.1
"""A function characterizes a line if it causes this share of the transfers."""
ALIKE = 0.5
"""Lines of the heap are alike if the functions that they have in common cause this share of the transfers of both."""

Key = tuple[str, frozenset[str]]
"""The kind of a line, and of a line of the heap the functions that characterize it."""


@dataclass
class Line:
    """A cache line, or lines that are alike: transfers by function, handovers, and the number of lines."""

    kind: str
    functions: Counter[str] = field(default_factory=Counter)
    handovers: int = 0
    number: int = 1

    @property
    def transfers(self) -> int:
        """By all functions."""
        return self.functions.total()

    @property
    def key(self) -> Key:
        """What the line has in common with lines of other loads."""
        least = SHARE * self.transfers
        named = (name for name, count in self.functions.items() if count >= least)
        return self.kind, frozenset(named if self.kind == HEAP else ())

    def add(self, other: Line) -> None:
        """Take in the figures of another line."""
        self.functions.update(other.functions)
        self.handovers += other.handovers
        self.number += other.number


Sums = dict[Key, Line]


class Symbols:
    """The static data of a System.map."""

    def __init__(self, text: str) -> None:
        found: dict[int, str] = {}
        for line in text.splitlines():
            address, kind, name = line.split(maxsplit=2)
            # Of several names the one without underscores is what the source calls the object.
            if kind in "BbDdRrVv" and (int(address, 16) not in found or not name.startswith("_")):
                found[int(address, 16)] = name
        self.starts = sorted(found)
        self.names = [found[start] for start in self.starts]

    def kind(self, address: int) -> str:
        """The symbols that a line is of, or else the area that it is in."""
        for first, end, area in AREAS:
            if first <= address < end:
                return area
        before, end = bisect_right(self.starts, address), bisect_right(self.starts, address + LINE - 1)
        if not 0 < before < len(self.starts):
            return OTHER
        offset = address - self.starts[before - 1]
        first_name = self.names[before - 1] + (f"+{offset:#x}" if offset else "")
        return ", ".join([first_name, *self.names[before:end]])


def regions(text: Iterable[str], symbols: Symbols) -> Iterator[list[Line]]:
    """The lines of what the plugin counted between the marks, region by region."""
    found: dict[int, Line] | None = None
    for row in text:
        if row.rstrip() == "region":
            if found is not None:
                yield list(found.values())
            found = {}
            continue
        count, handovers, function, hexadecimal = row.split()
        address = int(hexadecimal, 16)
        assert found is not None
        line = found.get(address) or found.setdefault(address, Line(symbols.kind(address)))
        line.functions[function] += int(count)
        line.handovers += int(handovers)
    if found is not None:
        yield list(found.values())


def summed(found: Iterable[tuple[Key, Line]]) -> Sums:
    """Sums of lines with the same key."""
    sums: Sums = {}
    for key, line in found:
        sums.setdefault(key, Line(line.kind, number=0)).add(line)
    return sums


def likeness(one: Counter[str], other: Counter[str]) -> float:
    """The share of the transfers of both that functions cause which they have in common: 1 if they are the same."""
    a, b = one.total(), other.total()
    return sum(min(count / a, other[name] / b) for name, count in one.items() if name in other)


def groups(runs: Iterable[Sums]) -> dict[Key, Key]:
    """The group of each key, so that lines of different loads which are alike are in one: most transfers first."""
    together = summed(item for sums in runs for item in sums.items())
    group_of: dict[Key, Key] = {}
    heap: dict[Key, Counter[str]] = {}
    for key, line in sorted(together.items(), key=lambda item: (-item[1].transfers, item[0][0], sorted(item[0][1]))):
        group_of[key] = key
        if line.kind != HEAP:
            continue
        best = max(heap, key=lambda known: likeness(heap[known], line.functions), default=None)
        if best and likeness(heap[best], line.functions) >= ALIKE:
            group_of[key] = best
            heap[best].update(line.functions)
        else:
            heap[key] = Counter(line.functions)
    return group_of
