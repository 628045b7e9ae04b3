# SPDX-License-Identifier: GPL-2.0
"""dm-crypt with and without workqueues, dm-log-writes, dm-thin, dm-snapshot, raid0, 1, 10, 5, loop, bare and with file systems"""

from lib.devices import STACKS, loop
from lib.formats import drop_on
from lib.row import main

main(lambda: drop_on(STACKS | {"loop": loop}), breaks_c=True, stacks=True)
