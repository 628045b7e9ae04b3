#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Single pages without periodic writeback (dirty_writeback_centisecs 0), one after the other.

Each waits for others that do not come, until the longest delay of a wb is over.
"""

from __future__ import annotations

from statistics import median

from dontcache import PAGE, cachestat, file_system, opened, write_dontcache
from knobs import never_many, never_periodic
from row import BOUND, SHORT, Verdict, main, told_wait, tried, waited

WRITES = 20 if SHORT else 200
DEADLINE = 0.25
"""Seconds that a page may be dirty on an idle drive. A page that the flusher finds only when it looks for what is
left has waited for two delays."""


def no_periodic() -> Verdict:
    figures, kept = [], True
    for kind in ("ext4", "xfs"):
        waits, found_dirty = [0.0], 0
        with file_system(kind) as root, opened(root / "file") as fd, never_periodic(), never_many():
            for number in range(WRITES):
                write_dontcache(fd, number * PAGE, bytes(PAGE))
                found_dirty += cachestat(fd).dirty > 0
                took = waited(lambda: cachestat(fd).dirty == 0, BOUND)
                if took is None:
                    break
                waits.append(took)
        tried(found_dirty, "a page that was dirty after its write")
        kept &= took is not None and median(waits) < DEADLINE
        told = told_wait(None if took is None else max(waits))
        figures.append(f"{kind} {WRITES} pages, the slowest {told}, half of them within {median(waits) * 1000:.0f} ms")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(no_periodic)
