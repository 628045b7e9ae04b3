# SPDX-License-Identifier: GPL-2.0
"""Compares two paired series: their ratio or difference, with a confidence interval.

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

NO_DIFFERENCE = "no difference shown"


@dataclass(frozen=True)
class Comparison:
    """What one series has of another one, with the interval that holds it."""

    estimate: float
    low: float
    high: float
    pairs: int
    p: float = 1.0
    """how often chance alone would show as much"""

    same = 1.0
    """The value at which there is no difference."""

    @property
    def shown(self) -> bool:
        """Does the interval exclude that there is none? What has no interval shows nothing."""
        return not self.low <= self.same <= self.high

    @property
    def known(self) -> bool:
        """Is there an interval at all?"""
        return not math.isinf(self.high)

    def verdict(self, name: str = "Rust") -> str:
        """In words, without a judgement on which direction is the better one."""
        if not self.shown:
            return NO_DIFFERENCE
        return f"{name} {'higher' if self.estimate > self.same else 'lower'}"


class Ratio(Comparison):
    """A geometric mean of ratios."""

    def __str__(self) -> str:
        if not self.known:
            return f"{self.estimate:.2f} (one pair)"
        if not self.shown and self.high > WIDE * self.low:
            return "inconclusive"
        digits = 3 if self.high - self.low < FINE else 2
        return f"{self.estimate:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"


class Difference(Comparison):
    """A mean of differences, where a zero leaves no ratio."""

    same = 0.0

    def __str__(self) -> str:
        if not self.known:
            return f"{self.estimate:+.3g} (one pair)"
        return f"{self.estimate:+.3g} ({self.low:+.3g} to {self.high:+.3g})"


def paired(base: Sequence[float], other: Sequence[float], differences: bool = False) -> Comparison:
    """other/base, pair by pair, with a t-interval on the logarithms; differences if asked for or a value is zero.

    With one pair the interval is everything: one pair shows nothing.
    """
    if len(base) != len(other) or not base:
        raise ValueError("the series are not paired")
    pairs = list(zip(base, other, strict=True))
    if min(*base, *other) > 0 and not differences:
        middle, half, p = _interval([math.log(b / a) for a, b in pairs])
        return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(pairs), p)
    middle, half, p = _interval([b - a for a, b in pairs])
    return Difference(middle, middle - half, middle + half, len(pairs), p)


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, half the width of its t-interval, and how often chance would take it as far from zero."""
    middle, count = fmean(values), len(values)
    if count == 1:
        return middle, math.inf, 1.0
    error = math.sqrt(math.fsum((x - middle) ** 2 for x in values) / (count - 1) / count)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * error
    if not error:
        return middle, 0.0, 1.0 if middle == 0 else 0.0
    return middle, half, 2 * float(stats.t.sf(abs(middle) / error, count - 1))


def outstanding(compared: Sequence[Comparison]) -> list[bool]:
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
