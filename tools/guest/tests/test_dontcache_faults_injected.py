#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RWF_DONTCACHE beside buffered writes while the kernel fails allocations and requests at random."""

import contextlib
import errno
import functools
import itertools
import mmap
import os
import random
import re
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from lib import ktap
from lib.devices import DISK_MIB, Device, node_of, null_timer, nvme
from lib.dontcache import (
    MIB,
    MOUNT,
    PAGE,
    RWF_DONTCACHE,
    cachestat,
    core,
    counter,
    file_system,
    forget,
    fsync_tells,
    opened,
    run,
    sanitizer,
    trace,
    until,
    within,
    write_dontcache,
)
from lib.walk import NULL_BLK, SECTOR, beside, sectors

KERNEL = Path("/sys/kernel/debug")
XFS_LOG = Path("/proc/sys/fs/xfs/xfssyncd_centisecs")

SIZE = 4 * MIB
"""What each writer has for itself."""
LONGEST = MIB // 4
SECONDS = 3
"""How long the writers meet faults, each time."""
ROUNDS = 4
LOST_PAGES = 64
"""What each round may take for ever. Memory that is free goes up and down by more than that, but
what faults lose goes one way."""
DEADLINE = 300.0

MOST = 1 << 30
"""More faults than there can be: the kernel counts down from it."""
BLOCKS = 8
"""How many blocks of a file fail."""
EXPECTED = {errno.EIO, errno.ENOMEM, errno.ENOSPC, errno.EROFS, errno.EUCLEAN, errno.ESHUTDOWN}
"""What a writer may be told, a file system that has given up included."""

Sectors = list[tuple[int, int]]
Injected = AbstractContextManager[Callable[[], int]]


# Faults. Each is a context, with a function that tells how many there were.


@contextlib.contextmanager
def attribute(name: str, **settings: int | str) -> Iterator[Callable[[], int]]:
    """One of the kernel's fault attributes, which counts down."""
    folder = KERNEL / name
    probability = settings.pop("probability")
    for key, value in {"verbose": 0, "times": MOST, **settings}.items():
        (folder / key.replace("_", "-")).write_text(str(value))
    (folder / "probability").write_text(str(probability))
    try:
        yield lambda: MOST - int((folder / "times").read_text())
    finally:
        (folder / "probability").write_text("0")


def mark(task: str, failing: bool) -> None:
    """Allocations of this task fail, or do not any more; a task that has gone does not mind."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        (Path("/proc") / task / "make-it-fail").write_text(str(int(failing)))


@contextlib.contextmanager
def flushers_marked() -> Iterator[None]:
    """The unbound workers, who write back, are among those whose allocations fail."""
    tasks = [path.parent.name for path in Path("/proc").glob("[0-9]*/comm") if "kworker/u" in path.read_text()]
    for task in tasks:
        mark(task, True)
    try:
        yield
    finally:
        for task in tasks:
            mark(task, False)


@contextlib.contextmanager
def failing_slab(_node: str, _bad: Sectors) -> Iterator[Callable[[], int]]:
    """Objects of all kinds, for the writers and the flushers."""
    with flushers_marked(), attribute("failslab", probability=5, task_filter="Y", ignore_gfp_wait="N") as count:
        yield count


@contextlib.contextmanager
def failing_pages(_node: str, _bad: Sectors) -> Iterator[Callable[[], int]]:
    """Pages, those of the page cache included, for the writers and the flushers."""
    with (
        flushers_marked(),
        attribute(
            "fail_page_alloc",
            probability=20,
            task_filter="Y",
            ignore_gfp_wait="N",
            ignore_gfp_highmem="N",
            min_order=0,
        ) as count,
    ):
        yield count


@contextlib.contextmanager
def failing_atomic(_node: str, _bad: Sectors) -> Iterator[Callable[[], int]]:
    """Objects for those who cannot wait, whoever they are."""
    with attribute("failslab", probability=10, task_filter="N", ignore_gfp_wait="Y") as count:
        yield count


@contextlib.contextmanager
def failing_submission(node: str, _bad: Sectors, probability: int = 5) -> Iterator[Callable[[], int]]:
    """Requests of the whole device, before it sees them: the file system gives up sooner or later."""
    switch = Path("/sys/block") / Path(node).name / "make-it-fail"
    switch.write_text("1")
    try:
        with attribute("fail_make_request", probability=probability, task_filter="N") as count:
            yield count
    finally:
        switch.write_text("0")


@contextlib.contextmanager
def failed_writes(node: str) -> Iterator[Callable[[], int]]:
    """Counts the writes of the device that ended with an error, whether it has requests or not."""
    number = os.stat(node).st_rdev
    failed = re.compile(rf"block_(bio_complete|rq_error): {os.major(number)},{os.minor(number)} W.*\[-{errno.EIO}\]")
    with trace("block/block_bio_complete", "block/block_rq_error") as lines:
        yield lambda: sum(1 for line in lines() if failed.search(line))


@contextlib.contextmanager
def failing_completion(node: str, bad: Sectors) -> Iterator[Callable[[], int]]:
    """Some blocks, where the device completes."""
    badblocks = NULL_BLK / "walk" / "badblocks"
    with failed_writes(node) as count:
        for first, last in bad:
            badblocks.write_text(f"+{first}-{last}")
        try:
            yield count
        finally:
            for first, last in bad:
                badblocks.write_text(f"-{first}-{last}")


def flakey_table(below: str, bad: Sectors) -> str:
    """The device below, with an error for each write of these sectors."""
    table, at = "", 0
    for first, last in sorted(bad):
        if first > at:
            table += f"{at} {first - at} linear {below} {at}\n"
        table += f"{first} {last + 1 - first} flakey {below} {first} 0 3600 1 error_writes\n"
        at = last + 1
    return table + f"{at} {DISK_MIB * MIB // SECTOR - at} linear {below} {at}\n"


def load_table(table: str, *command: str) -> None:
    """Hands a table of several lines to dmsetup."""
    path = Path("/tmp/table")
    path.write_text(table)
    run("dmsetup", *command, "--noudevsync", "flakey", path)


@contextlib.contextmanager
def flakey() -> Iterator[str]:
    """A device that can be told to fail, above one that completes in the interrupt of a timer."""
    with null_timer() as below:
        load_table(flakey_table(below, []), "create")
        try:
            yield node_of("flakey")
        finally:
            run("dmsetup", "remove", "--noudevsync", "flakey")


@contextlib.contextmanager
def failing_below(node: str, bad: Sectors) -> Iterator[Callable[[], int]]:
    """Writes of some blocks, inside device-mapper."""
    below = "/dev/walk"

    def change(sectors: Sectors) -> None:
        load_table(flakey_table(below, sectors), "reload")
        run("dmsetup", "suspend", "--noudevsync", "--nolockfs", "flakey")
        run("dmsetup", "resume", "--noudevsync", "flakey")

    with failed_writes(node) as count:
        change(bad)
        try:
            yield count
        finally:
            change([])


@dataclass(frozen=True)
class Fault:
    """What fails and on which device.

    Of allocations, those of marked writers may be what fails. Where it is data alone the file system goes on.
    """

    inject: Callable[[str, Sectors], Injected]
    device: Device
    marked: bool = False
    requests: bool = True
    data: bool = False


FAULTS = (
    Fault(failing_slab, nvme, marked=True, requests=False),
    Fault(failing_pages, nvme, marked=True, requests=False),
    Fault(failing_atomic, nvme, requests=False),
    Fault(failing_submission, nvme),
    Fault(failing_completion, null_timer, data=True),
    Fault(failing_below, flakey, data=True),
)


# What is done meanwhile.


def writer(fd: int, flags: int, seed: int, marked: bool, errors: mmap.mmap) -> None:
    """Writes anywhere in the file, syncs now and then, and counts the errors."""
    noise = random.Random(seed)
    data, told = noise.randbytes(LONGEST), 0
    deadline = time.monotonic() + SECONDS
    with opened("/proc/self/make-it-fail", os.O_WRONLY) as switch:
        os.write(switch, b"1" if marked else b"0")
        while time.monotonic() < deadline:
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
def prepared(name: str) -> Iterator[int]:
    """A file that has its blocks on the device, and nothing in the page cache."""
    with opened(MOUNT / name) as fd:
        for offset in range(0, SIZE, MIB):
            os.pwrite(fd, bytes(MIB), offset)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        yield fd


def under_load(fault: Fault, node: str, kind: str, files: dict[str, int]) -> int:
    """Lets all writers meet the fault; how many faults there were."""
    bad = [sectors(fd, kind, SIZE // BLOCKS * number) for fd in files.values() for number in range(BLOCKS)]
    with mmap.mmap(-1, PAGE) as errors, fault.inject(node, bad) as count:
        with contextlib.ExitStack() as stack:
            for seed, (name, flags) in enumerate(WRITERS):
                work = functools.partial(writer, files[name], flags, seed, fault.marked, errors)
                stack.enter_context(beside(work))
        injected, told = count(), sum(struct.unpack_from(f"={len(WRITERS)}I", errors))
    assert injected > 0, "nothing failed"
    assert told > 0 or not fault.requests, f"{injected} requests failed, and nobody was told"
    return injected


def quiet(node: str, files: dict[str, int]) -> None:
    """Once nothing is under writeback the counter has as many pages as there are."""
    until(lambda: not any(cachestat(fd).writeback for fd in files.values()), 60, "the writeback ends")
    until(lambda: len(set(counter(node))) == 1, 10, f"the counter is {counter(node)}")


def heard_once(listeners: dict[str, int]) -> None:
    """Whoever had a file open all the time, and has not synced it, hears once that its data is lost."""
    told = {name: fsync_tells([fd, fd]) for name, fd in listeners.items()}
    assert all(names == ["EIO", "none"] for names in told.values()), f"fsync told {told}"


def usable(root: Path) -> None:
    """What is written now is on the device, and is gone from the cache."""
    data = random.Random(7).randbytes(MIB)
    with opened(root / "afterwards") as fd:
        write_dontcache(fd, 0, data)
        os.fsync(fd)
        forget(fd)
        assert os.pread(fd, MIB, 0) == data, "the device holds something else"


def used() -> dict[str, int]:
    """Pages that are not free, and those of the kernel's objects, once all is dropped that can be."""
    for _ in range(3):
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
        time.sleep(0.5)
    figures = dict(re.findall(r"^(\w+): +(\d+) kB", Path("/proc/meminfo").read_text(), re.M))
    pages = {name: int(figures[name]) * 1024 // PAGE for name in ("MemTotal", "MemFree", "Slab")}
    # Each CPU has free pages at hand, which MemFree leaves out.
    at_hand = sum(map(int, re.findall(r"^ +count: +(\d+)$", Path("/proc/zoneinfo").read_text(), re.M)))
    return {"all": pages["MemTotal"] - pages["MemFree"] - at_hand, "slab": pages["Slab"]}


def one_round(fault: Fault, kind: str) -> int:
    """A file system that is made, meets the fault, and is mounted again; how many faults there were."""
    with fault.device() as node:
        with file_system(kind, node) as root:
            with contextlib.ExitStack() as stack:
                files = {name: stack.enter_context(prepared(name)) for name in dict(WRITERS)}
                listeners = {name: stack.enter_context(opened(root / name)) for name in files}
                injected = under_load(fault, node, kind, files)
                quiet(node, files)
                if fault.data:
                    heard_once(listeners)
            os.sync()
            run("umount", MOUNT)
            until(lambda: counter(node) == (0, 0), 10, f"the counter is {counter(node)} though nothing is mounted")
            run("mount", "-t", kind, node, MOUNT)
            usable(root)
            os.sync()
            until(lambda: counter(node) == (0, 0), 10, f"the counter is {counter(node)}")
    return injected


def hides_leaks() -> bool:
    """Whether memory that is free cannot be told from what is lost."""
    return sanitizer() == "kasan"


def survives(fault: Fault, kind: str) -> None:
    """Faults at random, again and again: no hang, the counter is right, no memory is lost."""
    faults, pages = [], []
    for _ in range(ROUNDS):
        faults.append(one_round(fault, kind))
        pages.append(used())
    print(f"# faults {faults}, pages in use after each round {pages}", flush=True)
    if hides_leaks():
        return  # bounded_survival() says so
    for name in ("all", "slab"):
        lost = min(after[name] - before[name] for before, after in itertools.pairwise(pages))
        assert lost < LOST_PAGES, f"each round loses {lost} pages or more ({name})"


def told_once(inject: Callable[[str, Sectors], Injected], device: Device, kind: str) -> None:
    """Whoever has one of the files open hears once that its data is lost, and of nothing afterwards."""
    with device() as node, file_system(kind, node):
        if kind == "ext4":
            run("mount", "-o", "remount,commit=600", MOUNT)
        for name, flags in (("dontcache", RWF_DONTCACHE), ("buffered", 0)):
            with prepared(name) as fd, opened(f"/proc/self/fd/{fd}", os.O_RDWR) as other:
                os.sync()
                with inject(node, [sectors(fd, kind, MIB)]) as count:
                    os.pwritev(fd, [random.Random(7).randbytes(2 * MIB)], 0, flags)
                    told = fsync_tells([fd])
                    injected = count()
                told += fsync_tells([fd, other, other])
            assert injected > 0, "nothing failed"
            assert told == ["EIO", "none", "EIO", "none"], f"fsync of the {name} file told {told}"
        usable(MOUNT)
        os.sync()
        until(lambda: counter(node) == (0, 0), 10, f"the counter is {counter(node)}")


def bounded(case: Callable[[], None]) -> None:
    """A case that may hang, on a kernel that has faults."""
    if not (KERNEL / "failslab").exists():
        raise ktap.Skip("the kernel injects no faults; those of make test SANITIZE=NAME do")
    if core() == "c":
        raise ktap.Skip("the C core's count stays behind where buffered writers are at work")
    within(DEADLINE, case)


def bounded_survival(fault: Fault, kind: str) -> None:
    """The same of survives(); where it could not look for lost memory the case is no success."""
    bounded(functools.partial(survives, fault, kind))
    if hides_leaks():
        raise ktap.Skip("it survives, but kasan keeps what was freed, up to a 32nd of the memory: no leak can be told")


@contextlib.contextmanager
def quiet_log() -> Iterator[None]:
    """xfs writes its log when it has to, and not now and then."""
    before = XFS_LOG.read_text()
    XFS_LOG.write_text("720000")
    try:
        yield
    finally:
        XFS_LOG.write_text(before)


all_submissions = functools.partial(failing_submission, probability=100)

if __name__ == "__main__":
    cases: list[tuple[str, Callable[[], None]]] = [
        (f"{kind}_{name}_told_once", functools.partial(bounded, functools.partial(told_once, inject, device, kind)))
        for kind in ("xfs", "ext4")
        for name, inject, device in (
            ("submission", all_submissions, nvme),
            ("completion", failing_completion, null_timer),
            ("below", failing_below, flakey),
        )
    ]
    cases += [
        (f"{kind}_survives_{fault.inject.__name__}", functools.partial(bounded_survival, fault, kind))
        for kind in ("xfs", "ext4")
        for fault in FAULTS
    ]
    with quiet_log():
        ktap.main("dontcache_faults_injected", cases)
