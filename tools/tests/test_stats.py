# SPDX-License-Identifier: GPL-2.0
"""Ratios within pairs, and intervals that hold the truth as often as they say."""

from __future__ import annotations

import math
import random

import pytest
from rust_writeback.bench import stats


def test_known_interval() -> None:
    # Logarithms 0.1, 0.2, 0.3: mean 0.2, deviation 0.1, t(0.975, 2) = 4.30265.
    ratio = stats.paired_ratio([1, 1, 1], [math.exp(0.1), math.exp(0.2), math.exp(0.3)])
    assert ratio is not None
    half = 4.30265273 * 0.1 / math.sqrt(3)
    assert ratio.estimate == pytest.approx(math.exp(0.2))
    assert ratio.low == pytest.approx(math.exp(0.2 - half))
    assert ratio.high == pytest.approx(math.exp(0.2 + half))
    assert ratio.pairs == 3


def test_drift_between_pairs_does_not_widen_the_interval() -> None:
    ratio = stats.paired_ratio([100, 50, 200], [110, 55, 220])
    assert ratio is not None
    assert ratio.low == pytest.approx(1.1) == ratio.high


def test_swapping_the_cores_inverts_the_ratio() -> None:
    one, other = [10.0, 12.0, 9.0], [11.0, 11.5, 10.0]
    there, back = stats.paired_ratio(one, other), stats.paired_ratio(other, one)
    assert there is not None and back is not None
    assert there.estimate == pytest.approx(1 / back.estimate)
    assert there.low == pytest.approx(1 / back.high)


def test_verdicts() -> None:
    assert stats.Ratio(1.1, 0.9, 1.3, 3).verdict() == "no difference shown"
    assert stats.Ratio(1.0, 1.0, 1.0, 3).verdict() == "no difference shown"
    assert stats.Ratio(1.2, 1.1, 1.3, 3).verdict() == "Rust higher"
    assert stats.Ratio(0.8, 0.7, 0.9, 3).verdict() == "Rust lower"


def test_one_pair_shows_nothing() -> None:
    ratio = stats.paired_ratio([1.0], [5.0])
    assert ratio is not None
    assert not ratio.shown
    assert str(ratio) == "5.00 (one pair)"


def test_zero_has_no_ratio() -> None:
    assert stats.paired_ratio([0.0, 1.0], [1.0, 1.0]) is None
    assert stats.paired_ratio([1.0, 1.0], [0.0, 1.0]) is None


def test_series_must_be_paired() -> None:
    with pytest.raises(ValueError, match="paired"):
        stats.paired_ratio([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="paired"):
        stats.paired_ratio([], [])


def test_the_interval_holds_the_truth_in_95_of_100_runs() -> None:
    chance = random.Random(1)
    held = 0
    runs = 2000
    for _ in range(runs):
        drift = [chance.lognormvariate(3, 0.5) for _ in range(3)]
        base = [d * chance.lognormvariate(0, 0.05) for d in drift]
        other = [1.2 * d * chance.lognormvariate(0, 0.05) for d in drift]
        ratio = stats.paired_ratio(base, other)
        assert ratio is not None
        held += ratio.low <= 1.2 <= ratio.high
    assert 0.935 <= held / runs <= 0.965


def test_geometric_mean() -> None:
    assert stats.geometric_mean([1, 4]) == pytest.approx(2)
    assert stats.geometric_mean([0, 4]) == 0
    with pytest.raises(ValueError, match="no values"):
        stats.geometric_mean([])
    with pytest.raises(ValueError, match="negative"):
        stats.geometric_mean([-1])


def test_a_narrow_interval_is_told_with_a_digit_more() -> None:
    assert str(stats.Ratio(1.0104, 1.0088, 1.012, 3)) == "1.010 (1.009-1.012)"
    assert str(stats.Ratio(1.0, 0.985, 1.015, 3)) == "1.00 (0.98-1.01)"
