# SPDX-License-Identifier: GPL-2.0
"""make run: a few loads on both cores in turn, and tables of the results."""

from .. import paths
from ..errors import Parser
from ..vm import machine
from . import boots, catalogue, full


def main(arguments: list[str]) -> int:
    """Compare, print, write the report."""
    machine.polite()
    Parser(prog="run", description=__doc__).parse_args(arguments)
    bench = full.Bench(boots.Machine(), catalogue.matrix(catalogue.SHORT), pairs=3)
    full.announce(bench)
    return full.carry_out(bench, paths.BUILD / "report", "make run")
