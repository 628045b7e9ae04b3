# SPDX-License-Identifier: GPL-2.0
"""Checks in make test what a write costs: Rust beside C, and beside the committed page."""

from ..bench import kept, price, price_page
from .guest_tests import Counts

COMMITTED_LIMIT = 1.01
"""What a DONTCACHE write may cost with Rust, times what the committed page says."""


def judged(found: price.Results, committed: price_page.Document) -> Counts:
    """Each cell of the Rust core is a case."""
    counts = Counts()
    wrong = dict(line.split(" ", 1) for line in price.judge(found))
    for name, measured in found["rust"].items():
        before = committed["cells"].get(name, {}).get("rust", {}).get("instructions")
        if before is None:
            wrong[name] = "not in tools/results/price.json; run: make price"
        elif measured.cell.mode == "dontcache" and measured.total > before * COMMITTED_LIMIT:
            wrong[name] = f"{measured.total / before:.3f} times what tools/results/price.json says"
        counts.judge(f"price: {name}: {measured.total}", wrong.get(name))
    return counts


def run() -> Counts:
    """Count the first cells of make price."""
    found, _ = price.measure([price.gate()])
    return judged(found, kept.read("price"))
