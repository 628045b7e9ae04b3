# SPDX-License-Identifier: GPL-2.0
"""python3 -m rust_writeback TARGET: what the Makefile calls."""

import importlib
import sys

from .errors import Parser, run_main

TARGETS = {
    "run": "bench.short",
    "bench": "bench.full",
    "bench-target": "bench.hardware",
    "compare": "bench.compare",
    "test": "check.stages",
    "kernel": "build.kernel",
    "arm64": "build.arm64",
    "kunit": "check.kunit",
    "conformance": "check.conformance",
    "mutants": "check.mutants",
    "litmus": "check.litmus",
    "micro": "bench.micro",
    "price": "bench.price",
    "results": "bench.kept",
    "series": "build.series",
    "lint": "check.lint",
    "lines": "check.lines",
}


def main(arguments: list[str]) -> int:
    """Hand over to the module of the target, which has the same signature."""
    parser = Parser(prog="rust_writeback", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    known = parser.parse_args(arguments[:1])
    module = importlib.import_module(f".{TARGETS[known.target]}", __package__)
    status: int = module.main(arguments[1:])
    return status


if __name__ == "__main__":
    sys.exit(run_main(lambda: main(sys.argv[1:])))
