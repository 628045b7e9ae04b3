# SPDX-License-Identifier: GPL-2.0
"""make compare A=FOLDER B=FOLDER: two results of make run or make bench side by side.

Figures of two runs are not paired: the machine may have been busier in one of them. Ratios can be compared,
because each run took them within its pairs.
"""

import json
from pathlib import Path
from typing import Any

from .. import tables
from ..errors import Failure, Parser
from . import report, stats, summary, table
from .catalogue import COMPARED
from .contenders import title

CHOSEN = (summary.MAIN, "p99", "write_size", "peak_dirty", "cached_after", "switches")
MATTERS = ("kernel", "accelerator", "cpus", "memory", "drives", "fio", "qemu", "host_cpu")
"""What of two setups should be alike."""

Key = tuple[str, str, str]


def load(folder: Path) -> dict[str, Any]:
    """The results in a folder."""
    try:
        document: dict[str, Any] = json.loads((folder / "results.json").read_text())
    except (OSError, ValueError):
        raise Failure(f"{folder} has no results.json; name a folder of make run or make bench below the project", 2) from None
    if (found := document.get("format")) != report.FORMAT:
        raise Failure(f"{folder}/results.json is of format {found}, not {report.FORMAT}; make it again", 2)
    return document


def figures(document: dict[str, Any]) -> dict[Key, dict[str, Any]]:
    """The summary by scenario, place and mode; for DONTCACHE beside buffered the core has the mode's place."""
    groups = [*document["beside"], *document["summary"]]  # on one kernel the second has all of the first
    return {(group["scenario"], group["place"], group["mode"]): group["figures"] for group in groups}


def rows(a: dict[str, Any], b: dict[str, Any]) -> list[list[str]]:
    """A row for each variant and each ratio of what both results have."""
    cores = [name for name in a["setup"]["variants"] if name in b["setup"]["variants"]]
    of_a, of_b = figures(a), figures(b)
    result = []
    for key in of_a:
        for metric in CHOSEN:
            one, two = of_a[key].get(metric), of_b.get(key, {}).get(metric)
            if not one or not two:
                continue
            where = [*key[:2], title(key[2]), f"{metric}, {one['unit']}".removesuffix(", ")]
            variants = cores if any(core in one for core in cores) else list(COMPARED)
            for variant in variants:
                if variant in one and variant in two:
                    values = (table.number(found[variant]) for found in (one, two))
                    result.append([*where, title(variant), *values, ""])
            for variant in variants:
                if variant in one["ratios"] and variant in two["ratios"]:
                    ratios = [stats.Ratio(**found["ratios"][variant]) for found in (one, two)]
                    result.append([*where, f"{title(variant)}/{title(variants[0])}", *map(str, ratios), _meet(*ratios)])
    return result


def _meet(a: stats.Ratio, b: stats.Ratio) -> str:
    """Intervals that do not meet differ; of others nothing is known."""
    if a.high < b.low:
        return "B higher"
    return "B lower" if b.high < a.low else "no difference shown"


def main(arguments: list[str]) -> int:
    """Print the two results beside each other."""
    parser = Parser(prog="compare", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="two folders with a results.json")
    options = parser.parse_args(arguments)
    if len(options.folders) != 2:
        raise Failure("make compare needs two results; give them as make compare A=build/bench B=build/report", 2)
    a, b = (load(folder) for folder in options.folders)
    found = rows(a, b)
    if not found:
        raise Failure("the two results have no load, variant and figure in common", 2)
    tables.show(tables.markdown(("scenario", "place", "mode", "figure", "core", "A", "B", ""), found, 5))
    for name, folder, document in zip("AB", options.folders, (a, b), strict=True):
        setup = document["setup"]
        print(f"{name}: {folder}, {setup['date']}, revision {', '.join(setup['revisions'])}, {table.many('pair', setup['pairs'])}")
    for name in MATTERS:
        one, two = (document["setup"].get(name) for document in (a, b))
        if one != two:
            print(f"the setups differ: {name.replace('_', ' ')}: {one} in A, {two} in B")
    print("The figures of two runs are not paired; the last column says whether the ratios' intervals meet.")
    return 0
