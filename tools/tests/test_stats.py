# SPDX-License-Identifier: GPL-2.0
"""Ratios within pairs, their intervals, and which of many stand out."""

import math

import pytest
from rust_writeback.bench import stats


def paired(base: list[float], other: list[float]) -> stats.Ratio:
    ratio = stats.paired(base, other)
    assert ratio
    return ratio


def test_known_interval() -> None:
    # Logarithms 0.1, 0.2, 0.3: mean 0.2, deviation 0.1, t(0.975, 2) = 4.30265.
    ratio = paired([1, 1, 1], [math.exp(0.1), math.exp(0.2), math.exp(0.3)])
    half = 4.30265273 * 0.1 / math.sqrt(3)
    assert [ratio.estimate, ratio.low, ratio.high] == pytest.approx([math.exp(0.2 + x) for x in (0, -half, half)])
    # Of Student's t with 2 degrees of freedom: P(|T| > t) = 1 - t / sqrt(2 + t^2).
    t = 0.2 / (0.1 / math.sqrt(3))
    assert [ratio.pairs, ratio.p] == [3, pytest.approx(1 - t / math.sqrt(2 + t * t))]


def test_drift_between_pairs_does_not_widen_the_interval() -> None:
    ratio = paired([100, 50, 200], [110, 55, 220])
    assert ratio.low == pytest.approx(1.1) == ratio.high


@pytest.mark.parametrize(
    ("ratio", "shown", "text"),
    [
        (stats.Ratio(1.0, 0.7, 1.3, 3), False, "1.00 (0.70-1.30)"),
        (stats.Ratio(1.0, 0.5, 1.1, 3), False, "inconclusive (0.50-1.10)"),
        (stats.Ratio(4.0, 2.0, 8.0, 3), True, "inconclusive (2.00-8.00)"),
        (stats.Ratio(0.8, 0.795, 0.805, 3), True, "0.800 (0.795-0.805)"),
    ],
)
def test_a_ratio_claims_no_more_than_the_interval_shows(ratio: stats.Ratio, shown: bool, text: str) -> None:
    assert (ratio.shown, str(ratio)) == (shown, text)


@pytest.mark.parametrize(("base", "other"), [([1.0], [5.0]), ([0.0, 1.0], [1.0, 1.0]), ([1.0, 1.0], [0.0, 2.0])])
def test_one_pair_or_a_zero_has_no_ratio(base: list[float], other: list[float]) -> None:
    assert stats.paired(base, other) is None


@pytest.mark.parametrize(
    ("p", "out"),
    [
        # Of 4: limits are 0.0125, 0.0167, 0.025 and 0.05. 0.03 is beyond its own, and so ends it for 0.04.
        ([0.01, 0.04, 0.03, 0.005], [True, False, False, True]),
        ([0.01, 0.04, 0.02, 0.005], [True] * 4),
        ([0.02, 0.02, 0.02, 0.02], [False] * 4),
        ([0.0, 1.0], [True, False]),
        ([0.04], [True]),
        ([], []),
    ],
)
def test_holms_method_by_hand(p: list[float], out: list[bool]) -> None:
    assert stats.outstanding([stats.Ratio(1.1, 1.05, 1.15, 10, one) for one in p]) == out
