# SPDX-License-Identifier: GPL-2.0
"""Latency histograms as fio's json+ writes them.

Percentiles of several jobs, or of several boots, are those of the sum of their histograms. A mean of
percentiles has no meaning.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

Histogram = Counter[int]
"""Nanoseconds -> how many requests took that long (fio's bins, 1.6 % wide)."""


def from_bins(bins: Mapping[str, int]) -> Histogram:
    """What fio calls clat_ns.bins: JSON turned the keys into strings."""
    return Counter({int(key): count for key, count in bins.items() if count})


def merge(histograms: Iterable[Mapping[int, int]]) -> Histogram:
    """Add bin to bin, key by key."""
    total: Histogram = Counter()
    for histogram in histograms:
        total.update(histogram)
    return total


def count(histogram: Mapping[int, int]) -> int:
    """How many requests the histogram holds."""
    return sum(histogram.values())


def percentile(histogram: Mapping[int, int], percent: float) -> int:
    """The nanoseconds that this share of the requests did not exceed.

    Defined as fio defines it, so that for one job both say the same number.
    """
    if not 0 < percent <= 100:
        raise ValueError(f"{percent} is not a percentage")
    requests = count(histogram)
    if not requests:
        raise ValueError("an empty histogram has no percentiles")
    wanted = math.ceil(round(percent / 100 * requests, 6))
    seen = 0
    for nanoseconds in sorted(histogram):
        seen += histogram[nanoseconds]
        if seen >= wanted:
            return nanoseconds
    raise AssertionError("the counts were summed above")
