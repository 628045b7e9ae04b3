#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Small writes into large folios beside who maps the file, truncates it, or moves it in memory."""

import functools
import mmap
import os
import random
from pathlib import Path

from lib import ktap
from lib.dontcache import KIB, MIB, MOUNT, PAGE, beside
from lib.walk import SECTOR, SEED, Model, Store, folio_frames, main, on_drives, on_ext4

STRIPE = 700
"""Stripes lie across blocks and folios; one process has the even ones, another the odd ones."""


def mapped_beside_written(store: Store) -> None:
    """Two processes at work in the same blocks: one stores through a mapping, the other writes."""
    size = 2 * MIB
    pairs = size // STRIPE // 2

    def store_all(fd: int, stores: list[tuple[int, bytes]]) -> None:
        with mmap.mmap(fd, size) as mapping:
            for number, (offset, data) in enumerate(stores):
                mapping[offset : offset + len(data)] = data
                if number % 100 == 0:
                    mapping.flush()

    with store, Model(store) as model:

        def place() -> tuple[int, int]:
            """Offset and length of something in an even stripe."""
            stripe = model.random.randrange(pairs) * 2 * STRIPE
            return stripe + model.random.randrange(STRIPE // 2), model.random.randint(1, STRIPE // 2)

        model.fill(size)
        model.verify()
        model.need_large_folio(MIB)
        for _ in range(2):
            stores = [(offset, model.noise(length)) for offset, length in (place() for _ in range(400))]
            with beside(functools.partial(store_all, model.fd, stores)):
                for number in range(400):
                    offset, length = place()
                    model.write(STRIPE + offset, length)
                    if number % 100 == 50:
                        os.fsync(model.fd)
            for offset, data in stores:
                model.took(offset, data)
            model.verify()


def truncated_beside_written(store: Store) -> None:
    """Each byte is what was written at its place, or zero, and the device has what the cache has."""
    size, kept = MIB, MIB // 4
    own = random.Random(SEED + 1)

    with store, Model(store) as model:
        model.fill(size)
        model.verify()
        truth = bytes(model.content)

        def truncate() -> None:
            for _ in range(200):
                length = own.randrange(kept, size)
                os.ftruncate(model.fd, own.choice((length, length // PAGE * PAGE, size)))

        with beside(truncate):
            for number in range(400):
                offset = model.random.randrange(size)
                data = truth[offset : offset + model.random.randint(1, model.random.choice((100, 100 * KIB)))]
                assert os.pwrite(model.fd, data, offset) == len(data)
                if number % 100 == 50:
                    os.fsync(model.fd)
        model.content = bytearray(model.read())
        assert model.content[:kept] == truth[:kept], "bytes were lost that nobody cut off"
        for at in range(kept, model.size, SECTOR):
            sector = model.content[at : at + SECTOR]
            if sector != truth[at : at + len(sector)]:
                wrong = [at + place for place, byte in enumerate(sector) if byte not in (0, truth[at + place])]
                assert not wrong, f"the byte at {wrong[0]} was never written there"
        model.verify()


def moved_in_memory(store: Store) -> None:
    """A folio takes its buffers along when compaction moves it."""
    if not store.large:
        raise ktap.Skip("no folio is large here")
    size, grain = 8 * MIB, 128 * KIB
    places = range(0, size, grain)
    with store, Model(store) as model:
        for _ in range(8):
            # Folios of another file between ours, which leave gaps when it goes: compaction moves pages into
            # gaps of higher addresses, never into what is all free.
            with open(MOUNT / "between", "wb", buffering=0) as between:
                for offset in places:
                    model.write(offset, grain)
                    between.write(bytes(2 * grain))
            os.fsync(model.fd)
            os.truncate(MOUNT / "between", 0)
            before = [folio_frames(model.fd, offset) for offset in places]
            Path("/proc/sys/vm/compact_memory").write_text("1")
            after = [folio_frames(model.fd, offset) for offset in places]
            moved = [at for at, old, new in zip(places, before, after, strict=True) if old != new and new[1] * PAGE > 64 * KIB]
            if moved:
                break
            model.reopen()
        assert moved, "no large folio was moved"
        for offset in moved:
            for _ in range(5):
                model.write(offset + model.random.randrange(grain - 3000), model.random.randint(1, 3000))
        model.verify()


main(
    "buffer_walk_races",
    on_ext4(mapped_beside_written, truncated_beside_written)
    + on_ext4(moved_in_memory, options=("delalloc",))
    + on_drives(2, mapped_beside_written),
)
