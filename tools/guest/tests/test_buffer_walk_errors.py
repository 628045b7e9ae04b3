#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Small writes into large folios when blocks run out or the device fails: nothing else is harmed."""

import errno
import mmap
import os

from lib.dontcache import KIB, MIB, MOUNT, NVME, PAGE, opened, sync
from lib.walk import OPTIONS, Model, Store, fill_stale, main, on_drives, on_ext4

SIZE = 4 * MIB
SMALL_MIB = 24
"""The size of a file system whose blocks run out."""


def fill_up(spare: int) -> None:
    """Leaves about as many bytes free on the file system."""
    with opened(MOUNT / "filler") as filler:
        size = 0
        for length in (MIB, 64 * KIB, KIB):
            try:
                while True:
                    size += os.pwrite(filler, bytes(length), size)
            except OSError as failure:
                assert failure.errno == errno.ENOSPC, failure
            os.fsync(filler)  # turns what was reserved for it into blocks, and frees the rest
        os.ftruncate(filler, size - spare)
    os.sync()


def no_space(store: Store) -> None:
    """What was taken is there, what was not is zero or as it was, and no stale block shows."""
    fill_stale(NVME, SMALL_MIB)
    store.mib, block = SMALL_MIB, store.block
    with store, Model(store) as model:
        model.truncate(SIZE)
        for offset in range(0, SIZE, 256 * KIB):
            model.write(offset + 7, 5000)
        model.verify()
        model.need_large_folio(3 * MIB)
        fill_up(spare=6 * block)
        failed = 0
        for offset in (3 * MIB + 50 * KIB + 3, 3 * MIB + 100 * KIB, model.size - block // 2, model.size + 5):
            written, error = model.attempt(offset, 20 * block)
            assert error in (0, errno.ENOSPC), f"the error is {error}"
            failed += written < 20 * block
            model.check("after a write without space")
        assert failed >= 3, f"of 4 writes only {failed} ran out of space"
        model.write(3 * MIB + 100, 4000)  # needs no block
        model.verify()
        os.unlink(MOUNT / "filler")
        os.sync()
        model.scatter(10)
        model.write(model.size, 10 * block + 1)
        model.verify()


def failed_writeback(store: Store) -> None:
    """A block could not be written back: its data is in the cache alone, and must not be lost there.

    On a block device the buffer is not up to date any more, though its folio is: who reads the block
    again gets old data.
    """
    block = store.block

    def lose(model: Model, offset: int, length: int) -> None:
        model.write(offset, length)
        assert (error := sync(model.fd)) == errno.EIO, f"the write-back at {offset} ended with error {error}"
        model.check("after a failed write-back")

    def write(model: Model, bad: int) -> None:
        model.write(bad + block - 9, 3)

    def store_to_mapping(model: Model, bad: int) -> None:
        with mmap.mmap(model.fd, 2 * PAGE, offset=bad // PAGE * PAGE) as mapping:
            mapping[bad % PAGE : bad % PAGE + 6] = b"stored"
        model.took(bad, b"stored")

    def truncate(model: Model, bad: int) -> None:
        size = model.size
        model.truncate(bad + block // 2)
        model.truncate(size)

    again = [write, store_to_mapping]
    if store.option:
        again.append(truncate)
    with store, Model(store) as model:
        model.fill(SIZE)
        model.verify()
        for write_again in again:
            bad = 2 * MIB + model.random.randrange(100, 400) * block
            model.need_large_folio(bad)
            with store.failing(model.fd, bad):
                lose(model, bad + 3, block // 2)
                # Beside it, in the same folio: this has nothing to do with the bad block.
                for offset in (bad - 2 * block + 7, bad + 2 * block + 5, bad - block - 3, bad + block + 1):
                    model.write(offset, block // 3)
                    os.fsync(model.fd)
                    model.check("after a write beside the block")
                # Into it: the block must not be read.
                lose(model, bad + block // 2, block // 3)
                # And its neighbours go the same way.
                lose(model, bad - 1, block + 2)
            write_again(model, bad)
            model.write(bad - 1, 1)
            model.write(bad + block, 1)
            model.check("after it was written again")
            model.verify()


# A journal that holds the data has no write-back of it that fsync could wait for.
main(
    "buffer_walk_errors",
    on_ext4(no_space) + on_ext4(failed_writeback, options=OPTIONS[:2], fails=True) + on_drives(SIZE // MIB, failed_writeback),
)
