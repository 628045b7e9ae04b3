# SPDX-License-Identifier: GPL-2.0
"""make run: both cores in turn under the same load, and a table of what they did."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import kernel, machine, paths
from ..errors import Failure, run_main
from ..progress import Bar
from ..steps import write_whole
from . import boots, catalogue, jobs, report, results, summary, table, variants

PLACE = "xfs"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line of the comparison."""
    parser = argparse.ArgumentParser(prog="run", description=__doc__)
    parser.add_argument("--pairs", type=int, default=3, help="boots of each core (default: %(default)s)")
    parser.add_argument("--direct-pairs", type=int, default=1, help="pairs that write directly, too (default: 1)")
    parser.add_argument("--mem", default="192M", help="memory of the guest (default: %(default)s)")
    parser.add_argument("--bps", default="112M", help="bytes a second that the drive takes (default: %(default)s)")
    parser.add_argument("--interval", type=float, default=0.1, help="seconds between samples (default: %(default)s)")
    parser.add_argument("--report", type=Path, default=paths.BUILD / "report", help="where the report goes")
    options = parser.parse_args(arguments)
    if options.pairs < 1:
        raise Failure("--pairs takes 1 or more; three are the least that give an interval worth having", 2)
    return options


def plan(options: argparse.Namespace) -> list[boots.Boot]:
    """All boots. One pair is enough for direct writes, which meet neither core."""
    planned = []
    for pair in range(1, options.pairs + 1):
        modes = catalogue.ALL_MODES if pair <= options.direct_pairs else catalogue.COMPARED
        steps = results.plan(catalogue.select(PLACE, modes, catalogue.SHORT))
        planned += [boots.Boot(pair, variant, PLACE, steps) for variant in variants.SHORT]
    return planned


def measure(
    options: argparse.Namespace, vm: boots.Machine, planned: Sequence[boots.Boot]
) -> tuple[list[dict[str, Any]], list[results.Measurement]]:
    """All boots: what is known of each, and the measurements of all."""
    measurements: list[results.Measurement] = []
    total = sum(len(boot.steps) + 2 for boot in planned)
    with Bar(f"{table.many('boot', options.pairs)} of each core", total, interval=10) as bar:
        for boot in planned:
            boots.run(vm, boot, bar)
            write_whole(options.report / "raw" / f"{boot.name}.jsonl", boot.output)
            measurements += results.accept(results.read_lines(boot.output), boot.steps, boot.pair, boot.variant)
    return [boot.known() for boot in planned], measurements


def main(arguments: list[str]) -> int:
    """Compare, print, write the report."""
    machine.polite()
    options = parse(arguments)
    fio = jobs.require_uncached()
    vm = boots.Machine(mem=options.mem, bps=options.bps, interval=options.interval)
    planned = plan(options)
    loads = [step.load for boot in planned for step in boot.steps]
    vm.check([load.scenario for load in loads])
    kernel.ensure()
    begin = time.monotonic()
    known, measurements = measure(options, vm, planned)
    groups = summary.summarize(measurements)
    setup = boots.describe(vm, fio, known, loads)
    setup["command"] = " ".join(["make run" if not arguments else "python3 -m rust_writeback run", *arguments])
    setup["seconds"] = round(time.monotonic() - begin)
    table.show(groups)
    print(table.LEGEND)
    for verdict in summary.verdicts(groups):
        print(verdict)
    report.write(options.report, setup, known, measurements, groups)
    place = os.path.relpath(options.report / "index.html", paths.PROJECT)
    print(f"{time.monotonic() - begin:.0f} s, {setup['accelerator']}; the report is {place}")
    return 0


if __name__ == "__main__":
    sys.exit(run_main(lambda: main(sys.argv[1:])))
