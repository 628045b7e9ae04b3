#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What becomes of the pages of a DONTCACHE write under each policy."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lib import ktap
from lib.devices import linear
from lib.dontcache import (
    MIB,
    PAGE,
    POLICY,
    cachestat,
    core,
    counter,
    file_system,
    opened,
    pattern,
    policy,
    remount,
    run,
    trace,
    until,
    write_dontcache,
)
from lib.walk import beside

BOOT = Path("/sys/module/rust_writeback/parameters/policy")
NAMES = ("adaptive", "kick", "inline", "rate-limited", "none")
NO_NAMES = ("\n", "kic", "kicks", "Kick", "rate limited", "inline none", "x" * 31, "x" * 32, "kick" + " " * 5000)

EXTENT = 256 * 1024
PAGES = EXTENT // PAGE

SIZE = 8 * MIB
"""What each writer has for itself."""
SECONDS = 10
"""How long the policies change under load."""


def needs_rust() -> None:
    if core() == "c":
        raise ktap.Skip("the C core has one policy")


def refused(data: bytes) -> int:
    """The error of one write to the file, which Python does not cut into pieces; 0 if there is none."""
    with opened(POLICY, os.O_WRONLY) as fd:
        try:
            os.write(fd, data)
        except OSError as error:
            return error.errno or 0
    return 0


def one_default() -> None:
    """A boot that says nothing has its core's default, and root alone may look."""
    assert POLICY.read_text() == BOOT.read_text() == ("adaptive\n" if core() == "rust" else "kick\n")
    assert POLICY.stat().st_mode & 0o777 == 0o600


def names() -> None:
    """All names are taken, with or without an end of line, and are read back in both places."""
    needs_rust()
    for name, end in itertools.product(NAMES, ("", "\n")):
        POLICY.write_text(name + end)
        assert POLICY.read_text() == BOOT.read_text() == f"{name}\n"
    POLICY.write_text("adaptive")


def no_names() -> None:
    """What is no name is refused and changes nothing, whatever was chosen before."""
    needs_rust()
    for chosen in NAMES:
        with policy(chosen):
            for name in NO_NAMES:
                got = refused(name.encode())
                assert got == errno.EINVAL, f"{name[:40]!r} gave {got}"
                assert POLICY.read_text() == f"{chosen}\n", f"{name[:40]!r} has changed the policy"


def no_choice_with_c() -> None:
    """The C core says that it cannot, even to its own policy."""
    if core() == "rust":
        raise ktap.Skip("the Rust core has the choice")
    for name in NAMES:
        assert refused(name.encode()) == errno.EOPNOTSUPP
        assert POLICY.read_text() == BOOT.read_text() == "kick\n"


@contextlib.contextmanager
def written_under(name: str, kind: str) -> Iterator[tuple[int, Callable[[], list[str]]]]:
    """A file whose second extent was written with DONTCACHE under the policy, between two that are
    dirty otherwise; and a function that returns the flusher's rounds for DONTCACHE."""
    needs_rust()
    with file_system(kind) as root, policy(name), opened(root / "file") as fd:
        # The file is made: what that has dirtied is written, and all that follows is data.
        os.ftruncate(fd, 3 * EXTENT)
        os.sync()
        os.pwrite(fd, pattern(0, EXTENT), 0)
        os.pwrite(fd, pattern(2 * EXTENT, EXTENT), 2 * EXTENT)
        with trace("writeback/writeback_start") as lines:
            write_dontcache(fd, EXTENT, pattern(EXTENT, EXTENT))
            yield fd, lambda: [line for line in lines() if "reason=dontcache" in line]
        os.fsync(fd)
        until(lambda: counter() == (0, 0), 10, f"the counter is {counter()}")
        until(lambda: cachestat(fd, EXTENT, EXTENT).cache == 0, 10, "the pages are gone once they are written")
        check(root / "file")


def check(path: Path) -> None:
    assert path.read_bytes() == pattern(0, 3 * EXTENT), "the file differs from what was written"


def dirty(fd: int) -> list[int]:
    """The dirty pages of each of the three extents."""
    return [int(cachestat(fd, EXTENT, number * EXTENT).dirty) for number in range(3)]


def the_flusher_makes_a_round(name: str, kind: str) -> None:
    """It says for whom."""
    with written_under(name, kind) as (fd, rounds):
        until(lambda: counter() == (0, 0), 30, f"the counter is {counter()}")
        assert rounds(), "no round for DONTCACHE"


def adaptive_is_a_round(kind: str) -> None:
    """The flusher writes, in a while."""
    the_flusher_makes_a_round("adaptive", kind)


def kick_is_a_round(kind: str) -> None:
    """The flusher writes."""
    the_flusher_makes_a_round("kick", kind)


def the_range_is_started(name: str, kind: str) -> None:
    """When the write returns its pages are not dirty any more, and those beside them still are."""
    with written_under(name, kind) as (fd, rounds):
        assert dirty(fd) == [PAGES, 0, PAGES], f"dirty: {dirty(fd)} of {PAGES} pages each"
        assert counter() == (0, 0), f"the counter is {counter()}"
        assert not rounds(), f"the flusher was asked: {rounds()}"


def inline_starts_the_range(kind: str) -> None:
    """The writer starts what it has written."""
    the_range_is_started("inline", kind)


def rate_limited_starts_the_range(kind: str) -> None:
    """The same where nothing of the file is under writeback."""
    the_range_is_started("rate-limited", kind)


def none_is_left_alone(kind: str) -> None:
    """Nobody writes the pages as long as they are neither old nor many."""
    with written_under("none", kind) as (fd, rounds):
        time.sleep(2)
        assert dirty(fd) == [PAGES] * 3, f"dirty: {dirty(fd)} of {PAGES} pages each"
        assert counter() == (PAGES, PAGES), f"the counter is {counter()}"
        assert not rounds(), f"the flusher was asked: {rounds()}"


def while_writing(name: str, kind: str) -> list[int]:
    """The dirty pages of three extents, written one after the other while the device takes nothing."""
    needs_rust()
    with linear() as node, file_system(kind, node) as root, opened(root / "file") as fd:
        # The blocks are there: starting to overwrite them needs nothing of the device.
        os.pwrite(fd, bytes(3 * EXTENT), 0)
        os.sync()
        # Folios of their own for each of the writes below.
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        assert cachestat(fd).cache == 0, "clean pages cannot be dropped"
        with policy(name):
            run("dmsetup", "suspend", "--noudevsync", "--nolockfs", "--noflush", "linear")
            try:
                for offset in range(0, 3 * EXTENT, EXTENT):
                    write_dontcache(fd, offset, pattern(offset, EXTENT))
                found, started = dirty(fd), cachestat(fd).writeback
            finally:
                run("dmsetup", "resume", "--noudevsync", "linear")
            assert sum(found) + started == 3 * PAGES, f"{started} pages under writeback and {found} dirty"
            until(lambda: cachestat(fd).writeback == 0, 10, "the writeback ends")
            # The file is idle again, and the next writer starts what it writes.
            write_dontcache(fd, EXTENT, pattern(EXTENT, EXTENT))
            assert dirty(fd)[1] == 0, "the writer of an idle file starts nothing"
        os.fsync(fd)
        until(lambda: counter(node) == (0, 0), 10, f"the counter is {counter(node)}")
        check(root / "file")
    return found


def rate_limited_starts_once(kind: str) -> None:
    """Who comes while the file is under writeback starts nothing."""
    found = while_writing("rate-limited", kind)
    assert found == [0, PAGES, PAGES], f"dirty: {found} of {PAGES} pages each"


def inline_starts_each_time(kind: str) -> None:
    """Who comes while the file is under writeback starts his pages all the same."""
    found = while_writing("inline", kind)
    assert found == [0, 0, 0], f"dirty: {found} of {PAGES} pages each"


def writing(path: Path) -> int:
    """The pages of the file that are under writeback."""
    with opened(path, os.O_RDONLY) as fd:
        return int(cachestat(fd).writeback)


def write_under_load(path: Path) -> None:
    """Writes anywhere in the file, again and again, and leaves it as the pattern has it."""
    noise = random.Random(path.name)
    with opened(path) as fd:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            offset = noise.randrange(SIZE // 8) * 8
            write_dontcache(fd, offset, noise.randbytes(min(noise.randint(1, EXTENT), SIZE - offset)))
        for offset in range(0, SIZE, EXTENT):
            write_dontcache(fd, offset, pattern(offset, EXTENT))


def changed_under_load(kind: str) -> None:
    """Four writers, and policies that follow one another as fast as they can."""
    needs_rust()
    with file_system(kind) as root:
        paths = [root / str(number) for number in range(4)]
        changes = 0
        with contextlib.ExitStack() as stack, policy("none"):
            for path in paths:
                stack.enter_context(beside(functools.partial(write_under_load, path)))
            # They go on for some seconds under the last: its pages are there to be counted.
            deadline = time.monotonic() + SECONDS - 3
            while time.monotonic() < deadline:
                POLICY.write_text(NAMES[changes % len(NAMES)])
                changes += 1
                time.sleep(0.01)
            POLICY.write_text("none")
            stack.close()
            until(lambda: not any(writing(path) for path in paths), 30, "the writeback ends")
            counted, true = counter()
            assert counted == true > 0, f"counted {counted}, and {true} are there"
        assert changes > 20, f"the policy changed {changes} times only"
        os.sync()
        until(lambda: counter() == (0, 0), 10, f"the counter is {counter()}")
        remount(kind)
        for path in paths:
            assert path.read_bytes() == pattern(0, SIZE), f"{path.name} differs from what was written"


ONCE = (one_default, names, no_names, no_choice_with_c)
PER_FILE_SYSTEM = (
    adaptive_is_a_round,
    kick_is_a_round,
    inline_starts_the_range,
    rate_limited_starts_the_range,
    none_is_left_alone,
    rate_limited_starts_once,
    inline_starts_each_time,
    changed_under_load,
)

if __name__ == "__main__":
    ktap.main(
        "writeback_policy",
        [(case.__name__, case) for case in ONCE]
        + [
            (f"{kind}_{case.__name__}", functools.partial(case, kind))
            for kind in ("xfs", "ext4")
            for case in PER_FILE_SYSTEM
        ],
    )
