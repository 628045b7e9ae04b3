# SPDX-License-Identifier: GPL-2.0
"""Single pages, one after the other, while periodic writeback is off or an hour away.

Each waits for others that do not come, until the longest delay of a wb is over. Where periodic writeback is off the
kernel runs the flusher for the first dirty inode at once, which finds what a writer has asked for.
"""

from functools import partial
from statistics import quantiles

from lib.dontcache import PAGE, cachestat, file_system, knobs, never_many, opened, waited, write_dontcache
from lib.row import BOUND, SHORT, Verdict, main, on_each, told_wait, tried

WRITES = 20 if SHORT else 200
PERIODS = {"off": 0, "an hour": 360_000}
"""Of periodic writeback, in hundredths of a second."""
DEADLINE = 0.25
"""Seconds that a page may be dirty on an idle drive. A page that the flusher finds only when it looks for what is
left has waited for two delays. One in ten may be late: a guest of a busy host is."""


def no_periodic(period: str, kind: str) -> Verdict:
    waits, found_dirty = [0.0], 0
    with file_system(kind) as root, opened(root / "file") as fd:
        with knobs(dirty_writeback_centisecs=PERIODS[period]), never_many():
            for number in range(WRITES // 2):
                write_dontcache(fd, number * PAGE, bytes(PAGE))
                found_dirty += cachestat(fd).dirty > 0
                took = waited(lambda: cachestat(fd).dirty == 0, BOUND)
                if took is None:
                    break
                waits.append(took)
    tried(found_dirty, "a page that was dirty after its write")
    most = quantiles(waits, n=10)[-1]
    told = told_wait(None if took is None else max(waits))
    figures = f"{len(waits)} pages, the slowest {told}, nine in ten within {most * 1000:.0f} ms"
    return Verdict(took is not None and most < DEADLINE, figures)


main(lambda: on_each(lambda period: on_each(partial(no_periodic, period)), PERIODS))
