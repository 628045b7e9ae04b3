# SPDX-License-Identifier: GPL-2.0
"""Reads what the plugin counts with lines=on: transfers of cache lines, by function and by line.

The address of a dynamic line differs from one load to the next. Such lines are grouped by their kind and by
the functions that transfer them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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


class Transfers(NamedTuple):
    """Transfers of a line that one function caused: how many, and how many handed it from writer to writer."""

    number: int
    handovers: int
    function: str
    address: int


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


def regions(text: Iterable[str]) -> Iterator[list[Transfers]]:
    """What the plugin counted between the marks, region by region."""
    region: list[Transfers] | None = None
    for line in text:
        if line.rstrip() == "region":
            if region is not None:
                yield region
            region = []
            continue
        count, handovers, function, address = line.split()
        assert region is not None
        region.append(Transfers(int(count), int(handovers), function, int(address, 16)))
    if region is not None:
        yield region


def lines(region: Sequence[Transfers], symbols: Symbols) -> list[Line]:
    """The lines of a region."""
    found: dict[int, Line] = {}
    for count, handovers, function, address in region:
        line = found.get(address) or found.setdefault(address, Line(symbols.kind(address)))
        line.functions[function] += count
        line.handovers += handovers
    return list(found.values())


def by_key(found: Iterable[Line]) -> dict[Key, Line]:
    """Sums of lines with the same key."""
    sums: dict[Key, Line] = {}
    for line in found:
        sums.setdefault(line.key, Line(line.kind, number=0)).add(line)
    return sums


def likeness(one: Counter[str], other: Counter[str]) -> float:
    """The share of the transfers of both that functions cause which they have in common: 1 if they are the same."""
    a, b = one.total(), other.total()
    return sum(min(count / a, other[name] / b) for name, count in one.items() if name in other)


def groups(sums: Sequence[Mapping[Key, Line]]) -> dict[Key, Key]:
    """The group of each key, so that lines of different loads which are alike are in one: most transfers first."""
    together: dict[Key, Line] = {}
    for part in sums:
        for key, line in part.items():
            together.setdefault(key, Line(line.kind, number=0)).add(line)
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


def merged(sums: Mapping[Key, Line], group_of: Mapping[Key, Key]) -> dict[Key, Line]:
    """Sums of the groups."""
    found: dict[Key, Line] = {}
    for key, line in sums.items():
        found.setdefault(group_of[key], Line(line.kind, number=0)).add(line)
    return found


def by_function(sums: Mapping[Key, Line]) -> Counter[str]:
    """Transfers by function."""
    total: defaultdict[str, int] = defaultdict(int)
    for line in sums.values():
        for name, count in line.functions.items():
            total[name] += count
    return Counter(total)
