#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RWF_DONTCACHE beside buffered writes while the kernel fails allocations and requests at random."""

import contextlib
import errno
import itertools
import mmap
import os
import random
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from lib import ktap
from lib.dontcache import MIB, NVME, PAGE, RWF_DONTCACHE, cachestat, core, counter, file_system, for_a_while, forget, in_child
from lib.dontcache import memory, mounted, opened, sanitizer, setting, until, write_dontcache, write_pieces

KERNEL = Path("/sys/kernel/debug")

SIZE = 4 * MIB
"""What each writer has for itself."""
LONGEST = MIB // 4
SECONDS = 3
"""How long the writers meet faults, each time."""
ROUNDS = 4
LOST_KIB = 64 * PAGE // 1024
"""What each round may take for ever. Memory that is free goes up and down by more than that, but
what faults lose goes one way."""

MOST = 1 << 30
"""More faults than there can be: the kernel counts down from it."""
EXPECTED = {errno.EIO, errno.ENOMEM, errno.ENOSPC, errno.EROFS, errno.EUCLEAN, errno.ESHUTDOWN}
"""What a writer may be told, a file system that has given up included."""

Injected = AbstractContextManager[Callable[[], int]]
"""A fault while the body runs, and how many there were."""


@contextlib.contextmanager
def attribute(name: str, probability: int, settings: dict[str, object]) -> Iterator[Callable[[], int]]:
    """One of the kernel's fault attributes, which counts down."""
    folder = KERNEL / name
    for key, value in {"verbose": 0, "times": MOST, **settings}.items():
        (folder / key).write_text(str(value))
    with setting(folder / "probability", probability):
        yield lambda: MOST - int((folder / "times").read_text())


def mark_flushers(failing: str) -> None:
    """Allocations of the unbound workers, who write back, fail, or do not any more."""
    for path in Path("/proc").glob("[0-9]*/comm"):
        # A task that has gone does not mind.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if "kworker/u" in path.read_text():
                path.with_name("make-it-fail").write_text(failing)


@contextlib.contextmanager
def failing_allocations(name: str, probability: int, **settings: object) -> Iterator[Callable[[], int]]:
    """Allocations that may wait, for the writers, who are marked as well, and the flushers."""
    mark_flushers("1")
    try:
        with attribute(name, probability, {"task-filter": "Y", "ignore-gfp-wait": "N", **settings}) as count:
            yield count
    finally:
        mark_flushers("0")


def slab() -> Injected:
    """Objects of all kinds."""
    return failing_allocations("failslab", 5)


def pages() -> Injected:
    """Pages, those of the page cache included."""
    return failing_allocations("fail_page_alloc", 20, **{"ignore-gfp-highmem": "N", "min-order": 0})


def atomic() -> Injected:
    """Objects for those who cannot wait, whoever they are."""
    return attribute("failslab", 10, {"task-filter": "N", "ignore-gfp-wait": "Y"})


@contextlib.contextmanager
def submission() -> Iterator[Callable[[], int]]:
    """Requests of the whole drive, before it sees them: the file system gives up sooner or later."""
    switch = Path("/sys/block", Path(NVME).name, "make-it-fail")
    with setting(switch, 1), attribute("fail_make_request", 5, {"task-filter": "N"}) as count:
        yield count


def writer(fd: int, flags: int, seed: int, errors: mmap.mmap) -> None:
    """Writes anywhere in the file, syncs now and then, and counts the errors."""
    noise = random.Random(seed)
    data, told = noise.randbytes(LONGEST), 0
    with opened("/proc/self/make-it-fail", os.O_WRONLY) as switch:
        os.write(switch, b"1")
        for _ in for_a_while(SECONDS):
            offset = noise.randrange(SIZE - LONGEST)
            try:
                os.pwritev(fd, [memoryview(data)[: noise.randint(1, LONGEST)]], offset, flags)
                if noise.random() < 0.2:
                    os.fsync(fd)
            except OSError as error:
                assert error.errno in EXPECTED, error
                told += 1
                time.sleep(0.01)  # a file system that has given up answers at once
        os.pwrite(switch, b"0", 0)
    struct.pack_into("=I", errors, seed * 4, told)


WRITERS = (("dontcache", RWF_DONTCACHE), ("buffered", 0), ("both", RWF_DONTCACHE), ("both", 0))
"""The file of each, and how he writes."""


@contextlib.contextmanager
def prepared(path: Path) -> Iterator[int]:
    """A file that has its blocks on the device, and nothing in the page cache."""
    with opened(path) as fd:
        write_pieces(fd, SIZE, MIB, flags=0)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        yield fd


def under_load(fault: Callable[[], Injected], files: dict[str, int]) -> int:
    """Lets all writers meet the fault; how many faults there were."""
    with mmap.mmap(-1, PAGE) as errors, fault() as count:
        in_child(*(partial(writer, files[name], flags, seed, errors) for seed, (name, flags) in enumerate(WRITERS)))
        injected, told = count(), sum(struct.unpack_from(f"={len(WRITERS)}I", errors))
    assert injected > 0, "nothing failed"
    assert told > 0 or fault is not submission, f"{injected} requests failed, and nobody was told"
    return injected


def usable(root: Path) -> None:
    """What is written now is on the device, and is gone from the cache."""
    data = random.Random(7).randbytes(MIB)
    with opened(root / "afterwards") as fd:
        write_dontcache(fd, 0, data)
        os.fsync(fd)
        forget(fd)
        assert os.pread(fd, MIB, 0) == data, "the device holds something else"
    os.sync()


def counts_nothing() -> None:
    until(lambda: counter() == (0, 0), 10, f"the counter is {counter()}")


def one_round(fault: Callable[[], Injected], kind: str) -> int:
    """A file system that is made, meets the fault, and is mounted again; how many faults there were."""
    with file_system(kind) as root:
        with contextlib.ExitStack() as stack:
            files = {name: stack.enter_context(prepared(root / name)) for name in dict(WRITERS)}
            injected = under_load(fault, files)
            # Once nothing is under writeback the counter has as many pages as there are.
            until(lambda: not any(cachestat(fd).writeback for fd in files.values()), 60, "the writeback ends")
            until(lambda: len(set(counter())) == 1, 10, f"the counter is {counter()}")
        os.sync()
    counts_nothing()
    with mounted(kind) as root:
        usable(root)
        counts_nothing()
    return injected


def survives(fault: Callable[[], Injected], kind: str) -> None:
    """Faults at random, again and again: the counter is right, and no memory is lost."""
    if not (KERNEL / "failslab").exists():
        raise ktap.Skip("the kernel injects no faults; those of make test SANITIZE=NAME do")
    if core() == "c":
        raise ktap.Skip("the C core's count stays behind where buffered writers are at work")
    faults, left = [], []
    for _ in range(ROUNDS):
        faults.append(one_round(fault, kind))
        left.append(memory())
    print(f"# faults {faults}, memory after each round {left}", flush=True)
    if sanitizer() == "kasan":
        raise ktap.Skip("it survives, but kasan keeps what was freed, up to a 32nd of the memory: no leak can be told")
    for name, sign in (("free", -1), ("slab", 1)):
        lost = min(sign * (after[name] - before[name]) for before, after in itertools.pairwise(left))
        assert lost < LOST_KIB, f"each round loses {lost} KiB or more ({name})"


ktap.main(
    "dontcache_faults_injected",
    [
        (f"{kind}_survives_failing_{fault.__name__}", partial(survives, fault, kind))
        for kind in ("xfs", "ext4")
        for fault in (slab, pages, atomic, submission)
    ],
)
