# SPDX-License-Identifier: GPL-2.0
"""Ratios within pairs, intervals that hold the truth as often as they say, and how few stand out by chance."""

from __future__ import annotations

import functools
import math
import random
from types import SimpleNamespace

import pytest
import scipy.stats  # type: ignore[import-untyped]
from rust_writeback.bench import stats


def test_known_interval() -> None:
    # Logarithms 0.1, 0.2, 0.3: mean 0.2, deviation 0.1, t(0.975, 2) = 4.30265.
    ratio = stats.paired([1, 1, 1], [math.exp(0.1), math.exp(0.2), math.exp(0.3)])
    half = 4.30265273 * 0.1 / math.sqrt(3)
    assert isinstance(ratio, stats.Ratio)
    assert ratio.estimate == pytest.approx(math.exp(0.2))
    assert ratio.low == pytest.approx(math.exp(0.2 - half))
    assert ratio.high == pytest.approx(math.exp(0.2 + half))
    assert ratio.pairs == 3
    # Of Student's t with 2 degrees of freedom: P(|T| > t) = 1 - t / sqrt(2 + t^2).
    t = 0.2 / (0.1 / math.sqrt(3))
    assert ratio.p == pytest.approx(1 - t / math.sqrt(2 + t * t))


def test_drift_between_pairs_does_not_widen_the_interval() -> None:
    ratio = stats.paired([100, 50, 200], [110, 55, 220])
    assert ratio.low == pytest.approx(1.1) == ratio.high


def test_swapping_the_cores_inverts_the_ratio() -> None:
    one, other = [10.0, 12.0, 9.0], [11.0, 11.5, 10.0]
    there, back = stats.paired(one, other), stats.paired(other, one)
    assert there.estimate == pytest.approx(1 / back.estimate)
    assert there.low == pytest.approx(1 / back.high)
    assert there.p == pytest.approx(back.p)


def test_verdicts() -> None:
    assert stats.Ratio(1.1, 0.9, 1.3, 3).verdict() == "no difference shown"
    assert stats.Ratio(1.0, 1.0, 1.0, 3).verdict() == "no difference shown"
    assert stats.Ratio(1.2, 1.1, 1.3, 3).verdict() == "Rust higher"
    assert stats.Ratio(0.8, 0.7, 0.9, 3).verdict() == "Rust lower"
    assert stats.Difference(0.5, -0.1, 1.1, 3).verdict() == "no difference shown"
    assert stats.Difference(0.5, 0.1, 0.9, 3).verdict() == "Rust higher"
    assert stats.Difference(-0.5, -0.9, -0.1, 3).verdict("dontcache") == "dontcache lower"


@pytest.mark.parametrize(("one", "other", "text"), [(1.0, 5.0, "5.00 (one pair)"), (0.0, 5.0, "+5 (one pair)")])
def test_one_pair_shows_nothing(one: float, other: float, text: str) -> None:
    found = stats.paired([one], [other])
    assert not found.shown and not found.known and not found.exact
    assert (str(found), found.p) == (text, 1.0)
    assert stats.outstanding([found]) == [False]


@pytest.mark.parametrize(("base", "other"), [([0.0, 1.0, 2.0], [1.0, 1.0, 3.5]), ([1.0, 1.0, 2.0], [0.0, 2.0, 4.5])])
def test_a_zero_leaves_a_difference_with_an_interval(base: list[float], other: list[float]) -> None:
    found = stats.paired(base, other)
    differences = [b - a for a, b in zip(base, other, strict=True)]
    middle = sum(differences) / 3
    deviation = math.sqrt(sum((one - middle) ** 2 for one in differences) / 2)
    half = 4.30265273 * deviation / math.sqrt(3)
    assert isinstance(found, stats.Difference) and found.known
    assert [found.estimate, found.low, found.high] == pytest.approx([middle, middle - half, middle + half])
    assert 0 < found.p < 1 and found.pairs == 3
    assert str(found).startswith(f"{middle:+.3g} (")


def test_nothing_but_zeros_is_no_difference() -> None:
    found = stats.paired([0.0] * 3, [0.0] * 3)
    assert isinstance(found, stats.Difference)
    assert (found.estimate, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert found.known and not found.shown and str(found) == "+0 (+0 to +0)"


def test_what_never_varies_stands_out() -> None:
    found = stats.paired([3.0] * 3, [4.0] * 3)
    assert [found.estimate, found.p] == pytest.approx([4 / 3, 0.0])
    assert stats.outstanding([found, stats.paired([3.0] * 3, [3.0] * 3)]) == [True, False]


def test_a_width_beyond_all_numbers_is_endless() -> None:
    found = stats.paired([1e-30, 1e30], [1e30, 1e-30])
    assert found.estimate == pytest.approx(1) and found.high == math.inf and found.low == 0
    assert not found.shown


def test_series_must_be_paired() -> None:
    with pytest.raises(ValueError, match="paired"):
        stats.paired([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="paired"):
        stats.paired([], [])


def drifting(chance: random.Random, pairs: int, deviation: float, truth: float) -> tuple[list[float], list[float]]:
    """Two series on a host that drifts by more than they differ; the logarithm of each value has that deviation."""
    drift = [chance.gauss(3, 0.5) for _ in range(pairs)]
    base = [math.exp(d + chance.gauss(0, deviation)) for d in drift]
    other = [math.exp(d + chance.gauss(math.log(truth), deviation)) for d in drift]
    return base, other


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same intervals: to find Student's quantile is slow, and it is always the same one."""
    quantile = functools.cache(scipy.stats.t.ppf)
    monkeypatch.setattr(scipy.stats, "t", SimpleNamespace(ppf=quantile, sf=lambda *_: math.nan))


@pytest.mark.parametrize("deviation", [0.05, 0.1, 0.2, 0.3])
@pytest.mark.parametrize("pairs", [3, 10])
def test_the_interval_holds_the_truth_in_95_of_100_runs(
    monkeypatch: pytest.MonkeyPatch, pairs: int, deviation: float
) -> None:
    quick(monkeypatch)
    chance, runs = random.Random(f"{pairs} {deviation}"), 10_000
    low = high = 0
    for _ in range(runs):
        ratio = stats.paired(*drifting(chance, pairs, deviation, 1.2))
        low += ratio.high < 1.2
        high += ratio.low > 1.2
    # Five deviations of a count of 500 would be more than a part in a hundred.
    assert 0.04 <= (low + high) / runs <= 0.06
    assert 0.4 <= low / (low + high) <= 0.6


@pytest.mark.parametrize("pairs", [3, 10])
def test_a_difference_holds_the_truth_as_often(monkeypatch: pytest.MonkeyPatch, pairs: int) -> None:
    quick(monkeypatch)
    chance, runs, missed = random.Random(pairs), 10_000, 0
    for _ in range(runs):
        base = [abs(chance.gauss(50, 5)) for _ in range(pairs)]
        other = [value + chance.gauss(2, 1) for value in base]
        found = stats.paired([0.0, *base[1:]], [other[0] - base[0], *other[1:]])
        missed += not found.low <= 2 <= found.high
    assert 0.04 <= missed / runs <= 0.06


def test_chance_shows_as_much_as_often_as_it_is_said_to() -> None:
    chance, runs = random.Random(1), 3000
    found = [stats.paired(*drifting(chance, 10, 0.2, 1.0)) for _ in range(runs)]
    for p in (0.5, 0.1, 0.05):
        often = sum(one.p <= p for one in found) / runs
        assert often == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / runs))
    # The interval and the p are of one mind.
    assert all(one.shown == (one.p < 0.05) for one in found)


def of_p(p: float) -> stats.Ratio:
    """A comparison that chance would show as often as this."""
    return stats.Ratio(1.1, 1.05, 1.15, 10, p)


@pytest.mark.parametrize(
    ("p", "out"),
    [
        # Of 4: limits are 0.0125, 0.0167, 0.025 and 0.05. 0.03 is beyond its own, and so ends it for 0.04.
        ([0.01, 0.04, 0.03, 0.005], [True, False, False, True]),
        ([0.01, 0.04, 0.02, 0.005], [True, True, True, True]),
        ([0.02, 0.02, 0.02, 0.02], [False] * 4),
        ([0.04], [True]),
        ([0.06], [False]),
        ([], []),
    ],
)
def test_holms_method_by_hand(p: list[float], out: list[bool]) -> None:
    assert stats.outstanding([of_p(one) for one in p]) == out


def test_nothing_stands_out_by_chance_in_95_of_100_reports() -> None:
    chance, reports, number = random.Random(2), 4000, 100
    corrected = uncorrected = 0
    for _ in range(reports):
        compared = [of_p(chance.random()) for _ in range(number)]
        corrected += any(stats.outstanding(compared))
        uncorrected += any(one.p < 0.05 for one in compared)
    assert 0.03 <= corrected / reports <= 0.06
    assert uncorrected / reports > 0.98


def test_real_comparisons_stand_out_as_rarely() -> None:
    chance, reports, number = random.Random(3), 200, 20
    out = sum(
        any(stats.outstanding([stats.paired(*drifting(chance, 10, 0.1, 1.0)) for _ in range(number)]))
        for _ in range(reports)
    )
    assert 0 < out <= 0.1 * reports
    different = [stats.paired(*drifting(chance, 10, 0.05, 1.3)), *(of_p(chance.uniform(0.1, 1)) for _ in range(99))]
    assert stats.outstanding(different) == [True] + [False] * 99


def test_counted_values() -> None:
    ratio = stats.counted([8.0], [9.0])
    assert isinstance(ratio, stats.Ratio) and ratio.exact and str(ratio) == "1.125"
    assert (ratio.shown, ratio.verdict()) == (False, "counted")
    difference = stats.counted([0.0], [9.0])
    assert isinstance(difference, stats.Difference) and difference.exact and str(difference) == "+9"
    assert not stats.paired([8.0], [9.0]).exact
    assert stats.outstanding([ratio, difference]) == [False, False]


def test_means() -> None:
    assert stats.geometric_mean([1, 4]) == pytest.approx(2)
    assert stats.geometric_mean([0, 4]) == 0
    with pytest.raises(ValueError, match="no values"):
        stats.geometric_mean([])
    with pytest.raises(ValueError, match="negative"):
        stats.geometric_mean([-1])
    assert stats.arithmetic_mean([0, 4, 5]) == 3


def test_a_narrow_interval_is_told_with_a_digit_more() -> None:
    assert str(stats.Ratio(1.0104, 1.0088, 1.012, 3)) == "1.010 (1.009-1.012)"
    assert str(stats.Ratio(1.0, 0.985, 1.015, 3)) == "1.00 (0.98-1.01)"
