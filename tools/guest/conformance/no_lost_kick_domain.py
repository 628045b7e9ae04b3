# SPDX-License-Identifier: GPL-2.0
"""An inode moves to the wb of another cgroup between the kick and the round, without periodic writeback."""

from lib.domain import KEPT_DIRTY, moved_while_dirty
from lib.dontcache import cachestat, never_periodic, waited
from lib.row import BOUND, Verdict, main, on_each, told_wait


def domain(kind: str) -> Verdict:
    with never_periodic(), moved_while_dirty(kind) as fd:
        took = waited(lambda: cachestat(fd, KEPT_DIRTY).dirty == 0, BOUND)
    return Verdict(took is not None, told_wait(took))


main(lambda: on_each(domain), breaks_c=True)
