# SPDX-License-Identifier: GPL-2.0
"""The ratio of two paired series, and how far it can be trusted.

A host that others use too drifts by more than the cores differ. The boots of a
pair follow each other, so the ratio within a pair keeps what the cores differ
by and loses most of the drift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats  # type: ignore[import-untyped]

CONFIDENCE = 0.95
NARROW = 0.1
"""The width of an interval, as a share of the ratio, that is good enough."""

FINE = 0.02
"""The width of an interval that two digits would hide."""

NO_DIFFERENCE = "no difference shown"


@dataclass(frozen=True)
class Ratio:
    """A geometric mean of ratios, with the interval that holds it."""

    estimate: float
    low: float
    high: float
    pairs: int

    @property
    def shown(self) -> bool:
        """Does the interval exclude 1? What has none shows nothing."""
        return not self.exact and not self.low <= 1.0 <= self.high

    @property
    def narrow(self) -> bool:
        """Is the interval so narrow that more pairs are not worth their time?"""
        return self.high - self.low < NARROW * self.estimate

    @property
    def known(self) -> bool:
        """Is there an interval at all?"""
        return not math.isinf(self.high)

    @property
    def exact(self) -> bool:
        """Counted: another boot gives the same digits."""
        return self.pairs == 1 and self.low == self.high

    def verdict(self, name: str = "Rust") -> str:
        """In words, without a judgement on which direction is the better one."""
        if self.exact:
            return "counted"
        if not self.shown:
            return NO_DIFFERENCE
        return f"{name} {'higher' if self.estimate > 1 else 'lower'}"

    def __str__(self) -> str:
        if not self.known:
            return f"{self.estimate:.2f} (one pair)"
        if self.exact:
            return f"{self.estimate:.3f}"
        digits = 3 if self.high - self.low < FINE else 2
        return f"{self.estimate:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"


def geometric_mean(values: Sequence[float]) -> float:
    """The mean to which ratios belong; zero when one of them is zero."""
    if not values:
        raise ValueError("no values")
    if min(values) < 0:
        raise ValueError("a negative value has no logarithm")
    if min(values) == 0:
        return 0.0
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def exact_ratio(base: Sequence[float], other: Sequence[float]) -> Ratio | None:
    """other/base where both were counted; None where a value is zero."""
    (a,), (b,) = base, other
    return Ratio(b / a, b / a, b / a, 1) if min(a, b) > 0 else None


def paired_ratio(base: Sequence[float], other: Sequence[float]) -> Ratio | None:
    """other/base, pair by pair, with a t-interval on the logarithms.

    None where a value is zero, for no ratio exists then. With one pair the
    interval is everything: one pair shows nothing.
    """
    if len(base) != len(other) or not base:
        raise ValueError("the series are not paired")
    if min(*base, *other) <= 0:
        return None
    logs = [math.log(b / a) for a, b in zip(base, other, strict=True)]
    mean = math.fsum(logs) / len(logs)
    if len(logs) == 1:
        return Ratio(math.exp(mean), 0.0, math.inf, 1)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in logs) / (len(logs) - 1))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1)) * deviation / math.sqrt(len(logs))
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(logs))
