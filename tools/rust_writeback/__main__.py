# SPDX-License-Identifier: GPL-2.0
"""python3 -m rust_writeback TARGET: what the Makefile calls."""

import importlib
import sys

from .errors import Parser, run_main

TARGETS = {
    "run": ("bench.short", "compare the two cores and write build/report/"),
    "bench": ("bench.full", "run every load on both cores, in pairs of boots"),
    "bench-target": ("bench.hardware", "the same on this machine's own kernel and drive"),
    "compare": ("bench.compare", "show two results side by side"),
    "test": ("check.stages", "run all tests"),
    "kernel": ("build.kernel", "build build/bzImage and build/.config"),
    "arm64": ("build.arm64", "compile our objects for arm64"),
    "kunit": ("check.kunit", "run the KUnit suites"),
    "conformance": ("check.conformance", "try what DONTCACHE promises on both cores"),
    "mutants": ("check.mutants", "try whether the rows of conformance find a core that breaks their rules"),
    "litmus": ("check.litmus", "try the orders that we rely on under the kernel's memory model"),
    "micro": ("bench.micro", "count the instructions of single operations on both cores"),
    "price": ("bench.price", "count the kernel's instructions per MiB on both cores"),
    "results": ("bench.kept", "keep what was measured last"),
    "series": ("build.series", "write our changes as a series of patches"),
    "lint": ("check.lint", "run the linters"),
    "lines": ("check.lines", "count the lines of C and Rust of each mechanism"),
}


def main(arguments: list[str]) -> int:
    """Hand over to the module of the target, which has the same signature."""
    parser = Parser(prog="rust_writeback", description=__doc__)
    targets = parser.add_subparsers(dest="target", required=True, metavar="TARGET")
    for name, (_, text) in TARGETS.items():
        targets.add_parser(name, help=text, add_help=False)
    target, rest = parser.parse_known_args(arguments)
    module = importlib.import_module(f".{TARGETS[target.target][0]}", __package__)
    status: int = module.main(rest)
    return status


if __name__ == "__main__":
    sys.exit(run_main(lambda: main(sys.argv[1:])))
