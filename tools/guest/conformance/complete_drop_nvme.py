#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes, overwrites and unaligned appends; an interrupt completes requests (NVMe); bare and with file systems."""

from __future__ import annotations

from lib.devices import nvme
from lib.dropping import drop_on
from lib.row import main

if __name__ == "__main__":
    main(lambda: drop_on(nvme, "bare", "ext4", "xfs"), breaks_c=True)
