# SPDX-License-Identifier: GPL-2.0
"""make run: a few loads on both cores in turn, and tables of the results."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .. import paths
from ..errors import Parser
from ..vm import machine
from . import boots, catalogue, contenders, full

PAIRS = 3


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line of the comparison."""
    parser = Parser(prog="run", description=__doc__, allow_abbrev=False)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="boots of each core (default: %(default)s)")
    options = parser.parse_args(arguments)
    full.check_pairs(options.pairs)
    return options


def main(arguments: list[str]) -> int:
    """Compare, print, write the report."""
    machine.polite()
    options = parse(arguments)
    vm = boots.Machine()
    bench = full.Bench(vm, catalogue.matrix(catalogue.SHORT), contenders.CORES, options.pairs)
    full.announce(bench)
    command = " ".join(["make run" if not arguments else "python3 -m rust_writeback run", *arguments])
    return full.carry_out(bench, paths.BUILD / "report", command)
