#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writeback that fails, on a device and on file systems."""

from __future__ import annotations

import errno

from devices import TIMER, null_block, target
from dontcache import MIB, flusher_held, sync, write_dontcache
from exactness import told
from row import Verdict, main, quiet_counter, settled_counter, synced_counter, tried
from test_dontcache_devices_faults import BAD
from walk import sectors


def errors() -> Verdict:
    figures, kept = [], True
    for kind in ("bare", "ext4", "xfs"):
        with null_block(TIMER) as disk:
            with target(kind, disk.device) as fd:
                write_dontcache(fd, 0, bytes(MIB))
                assert sync(fd) == 0, "a device that is well fails"
                with disk.failing(*sectors(fd, kind, BAD)):
                    with flusher_held():
                        write_dontcache(fd, 0, bytes(MIB))
                        before = settled_counter(disk.device)
                    tried(before[1] and sync(fd) == errno.EIO, "a write that fails")
                    failed = quiet_counter(disk.device)
                write_dontcache(fd, 0, bytes(MIB))
                sync(fd)
            end = synced_counter(disk.device)
        kept &= before[0] == before[1] and failed[0] == failed[1] and end[0] == 0
        figures.append(f"{kind} {told(before)}, failed {told(failed)}, synced {told(end)}")
    return Verdict(kept, "; ".join(figures))


if __name__ == "__main__":
    main(errors)
