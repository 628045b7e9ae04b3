# SPDX-License-Identifier: GPL-2.0
"""Writes, overwrites and unaligned appends, wherever a device completes its requests; bare and with file systems"""

from lib.devices import Device, brd, linear, loop, null_inline, null_softirq, null_timer, nvme, zram
from lib.formats import drop_on
from lib.row import main

DEVICES: dict[str, Device] = {
    "an interrupt (NVMe)": nvme,
    "the submitter (null_blk)": null_inline,
    "the submitter (brd)": brd,
    "the submitter (zram)": zram,
    "a softirq": null_softirq,
    "a timer": null_timer,
    "a timer, below device-mapper": linear,
    "a worker (loop)": loop,
}

main(lambda: drop_on(DEVICES), breaks_c=True)
