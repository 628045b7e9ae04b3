# SPDX-License-Identifier: GPL-2.0
"""Checks in make test what a write costs: Rust beside C, and beside the committed page."""

from ..bench import kept, price, price_page
from .guest_tests import Counts

COMMITTED_LIMIT = 1.01
"""What a DONTCACHE write may cost with Rust, times what the committed page says."""


def judged(found: price.Results, committed: price_page.Document) -> Counts:
    """Each cell of the Rust core is a test."""
    wrong = dict.fromkeys(found["rust"], "") | {line.split()[0]: line for line in price.judge(found)}
    for name, measured in found["rust"].items():
        before = committed["cells"].get(name, {}).get("rust", {}).get("instructions")
        if before is None:
            wrong[name] = f"{name} is not in tools/results/price.json; run: make price"
        elif measured.cell.mode == "dontcache" and measured.total > before * COMMITTED_LIMIT:
            wrong[name] = f"{name} {measured.total}, {measured.total / before:.3f} times what tools/results/price.json says"
    counts = Counts()
    for name, line in wrong.items():
        print(f"price: {name}: {line or found['rust'][name].total}", flush=True)
        if line:
            counts.fail(f"price: {line}")
        else:
            counts.passed += 1
    return counts


def run() -> Counts:
    """Count the first cells of make price."""
    found, _ = price.measure([price.gate()])
    return judged(found, kept.read("price"))
