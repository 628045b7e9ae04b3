# SPDX-License-Identifier: GPL-2.0
"""O_DIRECT writes to a block device whose inode was never dirtied, through each interface, then buffered writes."""

import os

from lib.devices import null_inline
from lib.dontcache import counter, opened
from lib.row import NOTHING, Verdict, main, quiet_counter, told
from lib.ways import write_each_way

DIRECT = frozenset({"O_DIRECT"})


def fresh_device() -> Verdict:
    with null_inline() as node, opened(node, os.O_RDWR) as fd:
        direct = write_each_way(fd, "bare", always=DIRECT)
        untouched = counter(node)
        buffered = write_each_way(fd, "bare", never=DIRECT)
        os.fsync(fd)
        counted = quiet_counter(node)
    wrong = direct + buffered
    figures = f"{told(untouched)} counted after direct writes, {told(counted)} after buffered ones"
    return Verdict(not wrong and untouched == counted == NOTHING, "; ".join([figures, *wrong]))


main(fresh_device, breaks_c=True)
