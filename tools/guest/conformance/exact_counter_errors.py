# SPDX-License-Identifier: GPL-2.0
"""Writeback fails, on a block device and on file systems."""

import errno
import os
from functools import partial

from lib.devices import BAD, INLINE, TIMER, null_block, target
from lib.dontcache import MIB, flusher_held, forget, opened, pattern, sync, write_dontcache
from lib.row import NOTHING, Verdict, exact, held_counter, main, on_each, quiet_counter, synced_counter, told, tried
from lib.walk import sectors

PLACES = {"inside submission:": INLINE, "in an interrupt:": TIMER}
"""Where the device completes."""
ONCE = [errno.EIO, 0, errno.EIO, 0]
"""Each of two open files tells the error once."""


def errors(completes: str, kind: str) -> Verdict:
    data = pattern(0, MIB)
    with null_block(PLACES[completes]) as disk:
        with target(kind, disk.device) as fd, opened(f"/proc/self/fd/{fd}", os.O_RDWR) as other:
            write_dontcache(fd, 0, bytes(MIB))
            assert sync(fd) == 0, "a device that is well fails"
            with disk.failing(*sectors(fd, BAD)):
                with flusher_held():
                    write_dontcache(fd, 0, bytes(MIB))
                    before = held_counter(disk.device)
                heard = [sync(file) for file in (fd, fd, other, other)]
                failed = quiet_counter(disk.device)
            write_dontcache(fd, 0, data)
            later = sync(fd)
            forget(fd)
            right = os.pread(fd, MIB, 0) == data
        end = synced_counter(disk.device)
    wrong = "" if right and not later else f", then error {later}, data {'right' if right else 'wrong'}"
    kept = exact(before) and exact(failed) and heard == ONCE and not wrong and end == NOTHING
    tried(not kept or before[1], f"a dirty page whose write fails: {told(before)}")
    return Verdict(kept, f"{told(before)}, errors {heard} told, failed {told(failed)}, synced {told(end)}{wrong}")


main(lambda: on_each(lambda completes: on_each(partial(errors, completes), ("bare", "ext4", "xfs")), PLACES))
