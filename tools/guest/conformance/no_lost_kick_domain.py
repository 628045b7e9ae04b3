#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An inode moves to the wb of another cgroup between the kick and the round, without periodic writeback."""

from lib.dontcache import cachestat
from lib.domain import KEPT_DIRTY, moved_while_dirty
from lib.knobs import never_periodic
from lib.row import BOUND, Verdict, main, told_wait, waited


def domain() -> Verdict:
    figures, kept = [], True
    for kind in ("ext4", "xfs"):
        with never_periodic(), moved_while_dirty(kind) as fd:
            took = waited(lambda fd=fd: cachestat(fd, KEPT_DIRTY).dirty == 0, BOUND)  # type: ignore[misc]
        kept &= took is not None
        figures.append(f"{kind} {told_wait(took)}")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(domain, breaks_c=True)
