# SPDX-License-Identifier: GPL-2.0
"""Runs test cases and reports them as KTAP."""

import sys
import traceback
from collections.abc import Callable, Sequence


class Skip(Exception):
    """The case cannot be run here; the reason is reported."""


def main(suite: str, cases: Sequence[tuple[str, Callable[[], None]]]) -> None:
    """Runs the cases in order, and exits with 1 when one of them fails.

    The plan comes first, so that a script that dies on the way is seen to have
    run fewer cases than it announced.
    """
    print("KTAP version 1", "1..1", "    KTAP version 1", sep="\n")
    print(f"    # Subtest: {suite}", f"    1..{len(cases)}", sep="\n", flush=True)
    failed = 0
    for number, (name, case) in enumerate(cases, 1):
        try:
            case()
            line = f"ok {number} {name}"
        except Skip as reason:
            line = f"ok {number} {name} # SKIP {reason}"
        except Exception:
            failed += 1
            for text in traceback.format_exc().splitlines():
                print(f"    # {text}")
            line = f"not ok {number} {name}"
        print(f"    {line}", flush=True)
    print("not ok 1" if failed else "ok 1", suite, flush=True)
    sys.exit(1 if failed else 0)
