#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Small writes into large folios on ext4 and on block devices: every byte in its place."""

import os

from lib.dontcache import KIB, MIB, PAGE
from lib.walk import Model, Store, main, on_drives, on_ext4

SIZE = 4 * MIB


def overwrite(store: Store) -> None:
    """Folios that were written, folios that were read and have no buffers yet, and none at all."""
    with store, Model(store) as model:
        model.fill(SIZE)
        model.need_large_folio(MIB)
        model.scatter(20)
        model.verify()
        model.need_large_folio(3 * MIB)
        model.scatter(30)
        model.verify()
        model.reopen()
        model.scatter(20)
        model.verify()


def append(store: Store) -> None:
    """Appends of odd lengths, to a tail that is cached and to one that is not."""
    with store, Model(store) as model:
        for _ in range(3):
            for _ in range(12):
                model.write(model.size, model.random.randint(1, model.random.choice((10, PAGE, 100 * KIB))))
                if model.random.random() < 0.3:
                    os.fsync(model.fd)
            model.verify()
            model.write(model.size, 100)
            model.reopen()


def holes(store: Store) -> None:
    """Writes into holes that are cached as large folios, into unwritten blocks, beyond the end, and where it was."""
    with store, Model(store) as model:
        model.truncate(SIZE)
        for offset in range(0, SIZE, 256 * KIB):
            model.write(offset + model.random.randrange(200 * KIB), 5000)
        os.posix_fallocate(model.fd, MIB + 3000, 300 * KIB)
        model.verify()
        model.need_large_folio(3 * MIB)
        model.scatter(15)
        for _ in range(3):
            hole = model.random.randrange(SIZE - 200 * KIB)
            model.punch(hole, 150 * KIB + 17)
            model.write(hole + 40 * KIB + 5, 100)
            model.write(hole + 100 * KIB - 3, 9 * KIB)
        model.verify()
        model.scatter(10)
        for _ in range(8):
            # What was cut off and comes back is zero.
            model.truncate(model.random.randint(model.size // 2, model.size))
            model.write(model.random.randrange(model.size + 300 * KIB), model.random.randint(1, 20 * KIB))
            model.truncate(model.size + model.random.randrange(300 * KIB))
            model.write(model.random.randrange(model.size), model.random.randint(1, 100))
        model.verify()


def short_copy_into_holes(store: Store) -> None:
    """The source of a write into holes, over blocks that are new, about the end or beyond it cannot be read to its end."""
    block, hole = store.block, 3 * MIB
    with store, Model(store) as model:
        model.fill(SIZE)
        model.punch(hole, 256 * KIB)
        model.verify()
        model.need_large_folio(hole)
        for offset in range(hole, hole + 200 * KIB, 20 * KIB):
            # The second meets blocks that the first has made, and must not take them for its own.
            model.write(offset + 3 * block + 5, 2 * block)
            model.short_write(offset + block + 7, 2 * block, 3 * block)
        model.verify()
        model.short_write(model.size - 100, 50, 3 * block)
        model.short_write(model.size - 100, block + 300, 3 * block)
        model.short_write(model.size, 2 * block + 1, 64 * KIB)
        model.short_write(model.size + 5 * block + 1, 3, 64 * KIB)
        model.verify()
        model.truncate(model.size + 64 * KIB)
        model.check("after the file grew")
        model.punch(hole, 64 * KIB)
        model.reopen()
        model.short_write(hole + 5, 20 * KIB, 40 * KIB)
        model.verify()


def fault_beyond_the_end(store: Store) -> None:
    """Of a write that starts beyond the end nothing can be read: no stale byte may show for it."""
    with store, Model(store) as model:
        model.fill(100)
        beyond = 3 * store.block + 100
        model.short_write(beyond, 0, 5000)
        # ext4 lets the failed write move the end of the file to where it started.
        size = os.fstat(model.fd).st_size
        assert size in (100, beyond), f"the size is {size}"
        model.truncate(size)
        model.verify()
        model.truncate(64 * KIB)
        model.verify()


main(
    "buffer_walk",
    on_ext4(overwrite, append, holes, short_copy_into_holes, fault_beyond_the_end) + on_drives(SIZE // MIB, overwrite),
)
