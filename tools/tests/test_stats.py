# SPDX-License-Identifier: GPL-2.0
"""Ratios within pairs, their intervals, and which of many stand out."""

import math

import pytest
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
    assert not found.shown and not found.known
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


def test_a_table_does_not_print_an_interval_that_tells_little() -> None:
    assert stats.Ratio(1.0, 0.5, 1.1, 3).cell == "inconclusive"
    assert stats.Ratio(4.0, 2.0, 8.0, 3).cell == "4.00 (2.00-8.00)"
    assert stats.Ratio(1.0, 0.7, 1.3, 3).cell == "1.00 (0.70-1.30)"
    assert stats.Ratio(1.0, 0.0, math.inf, 1).cell == "1.00 (one pair)"
    assert stats.Difference(0.5, -1.0, 2.0, 3).cell == "+0.5 (-1 to +2)"
