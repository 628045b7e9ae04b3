# SPDX-License-Identifier: GPL-2.0
"""The flusher is idle once all pages are written: no timer of a DONTCACHE write runs it again."""

import os
import time

from lib.dontcache import MIB, PAGE, counter, file_system, never_periodic, opened, trace, until, write_dontcache
from lib.row import SHORT, Verdict, main, on_each, tried

SECONDS = 3 if SHORT else 20
LAST = 1
"""It may look once for what is left, and find that nothing is."""


def idle(kind: str) -> Verdict:
    with (
        file_system(kind) as root,
        opened(root / "small") as small,
        opened(root / "large") as large,
        opened(root / "synced") as synced,
    ):
        with never_periodic():
            with trace("workqueue/workqueue_execute_start") as lines:
                write_dontcache(large, 0, bytes(16 * MIB))
                write_dontcache(small, 0, bytes(PAGE))
                write_dontcache(synced, 0, bytes(PAGE))
                os.fsync(synced)
                until(lambda: counter() == (0, 0), 30, f"the counter is {counter()}")
                os.sync()
                ran = sum("wb_workfn" in line for line in lines())
                time.sleep(SECONDS)
                runs = sum("wb_workfn" in line for line in lines()) - ran
    tried(ran, "a flusher that is seen to run")
    return Verdict(runs <= LAST, f"the flusher ran {runs} times in {SECONDS} s")


main(lambda: on_each(idle))
