# SPDX-License-Identifier: GPL-2.0
"""Compares two paired series: their ratio, with a confidence interval.

A host that others use too drifts by more than the cores differ. The boots of a pair follow each other, so the
ratio within a pair keeps the difference of the cores and loses most of the drift. The number of pairs is fixed
before the first one, because the intervals would not be valid otherwise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy import stats  # type: ignore[import-untyped]

CONFIDENCE = 0.95

FINE = 0.02
"""The width of an interval that two digits would hide."""

WIDE = 2
"""So many times its low end is the high end of a wide interval."""


@dataclass(frozen=True)
class Ratio:
    """A geometric mean of the ratios within pairs, with the interval that holds it."""

    estimate: float
    low: float
    high: float
    pairs: int
    p: float = 1.0
    """how often chance alone would show as much"""

    @property
    def shown(self) -> bool:
        """Does the interval exclude that there is no difference?"""
        return not self.low <= 1 <= self.high

    def __str__(self) -> str:
        digits = 3 if self.high - self.low < FINE else 2
        estimate = "inconclusive" if self.high > WIDE * self.low else f"{self.estimate:.{digits}f}"
        return f"{estimate} ({self.low:.{digits}f}-{self.high:.{digits}f})"


def paired(base: Sequence[float], other: Sequence[float]) -> Ratio | None:
    """other/base, pair by pair, with a t-interval on the logarithms. One pair has no interval, and a zero no ratio."""
    if len(base) < 2 or min(*base, *other) <= 0:
        return None
    middle, half, p = interval([math.log(b / a) for a, b in zip(base, other, strict=True)])
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(base), p)


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, half the width of its t-interval, and how often chance would take it as far from zero."""
    middle, count = fmean(values), len(values)
    error = math.sqrt(math.fsum((x - middle) ** 2 for x in values) / (count - 1) / count)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * error
    if not error:
        return middle, 0.0, 1.0 if middle == 0 else 0.0
    return middle, half, 2 * float(stats.t.sf(abs(middle) / error, count - 1))


def outstanding(compared: Sequence[Ratio]) -> list[bool]:
    """Which of so many comparisons stand out, by Holm's method.

    If nothing differs, one of them or more does so by chance in one report of twenty.
    """
    order = sorted(range(len(compared)), key=lambda index: compared[index].p)
    found = [False] * len(compared)
    for rank, index in enumerate(order):
        if compared[index].p > (1 - CONFIDENCE) / (len(compared) - rank):
            break
        found[index] = True
    return found
