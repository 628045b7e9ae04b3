#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The bounds of the adaptive policy in debugfs: what is taken, what is refused, and what a wb shows of itself."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lib import ktap
from lib.dontcache import (
    DEBUGFS,
    MIB,
    PAGE,
    cgroup,
    core,
    counter,
    file_system,
    flusher_held,
    in_cgroup,
    left_of,
    opened,
    trace,
    until,
    write_dontcache,
)
from lib.walk import SECTOR, NullBlock

FOLDER = DEBUGFS / "adaptive"
DEFAULTS = {"least_kib": 4096, "most_kib": 8192, "inode_kib": 2048, "least_ms": 200, "most_ms": 200}
PAGE_KIB = PAGE >> 10
GOOD = {
    "least_kib": (PAGE_KIB, 8192),
    "most_kib": (4096, 1 << 20),
    "inode_kib": (0, 8192),
    "least_ms": (1, 200),
    "most_ms": (200, 10000),
}
"""The least and the most that each may be beside the others' defaults."""

REASON = re.compile(r"reason=(\w+)")
REQUEST = 512 << 10
"""What the test drive takes at once."""
ISSUED = re.compile(r"block_rq_issue: \S+ W\w* \d+ \([^)]*\) \d+ \+ (\d+) ")
PIECE = 64 << 10
"""What a folio has that the flusher writes as a whole."""
WROTE = re.compile(r" wrote=(\d+)")
WB = re.compile(r"(\S+) (\d+) ms (\d+) KiB (\d+) KiB")


def bounds() -> dict[str, int]:
    return {name: int((FOLDER / name).read_text()) for name in DEFAULTS}


def error_of(name: str, text: str) -> str:
    try:
        (FOLDER / name).write_text(text)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "no error"


@contextmanager
def defaults() -> Iterator[None]:
    """Whatever happens, they are back afterwards."""
    assert bounds() == DEFAULTS, f"the bounds are {bounds()}"
    try:
        yield
    finally:
        # The least first where it has grown, or it would be above the most.
        for names in (("least_kib", "inode_kib", "least_ms"), ("most_kib", "most_ms")) * 2:
            for name in names:
                error_of(name, str(DEFAULTS[name]))
    assert bounds() == DEFAULTS, f"the bounds stayed {bounds()}"


def what_can_be_is_taken() -> None:
    with defaults():
        for name, ends in GOOD.items():
            for number in (*ends, DEFAULTS[name]):
                assert error_of(name, f"{number}\n") == "no error", f"{name} of {number}"
                assert bounds() == DEFAULTS | {name: number}


def what_cannot_be_is_refused() -> None:
    """Nothing is changed by it."""
    with defaults():
        for name, (least, most) in GOOD.items():
            step = PAGE_KIB if name.endswith("_kib") else 4
            for text in (str(least - step), str(most + step), "-1", "x", "", "1 2", "9" * 30, str((1 << 32) + DEFAULTS[name])):
                got = error_of(name, text)
                # Nothing at all is not even handed on.
                assert got in ("EINVAL", "ERANGE") or not text, f"{name} of {text!r} gave {got}"
                assert bounds() == DEFAULTS, f"{name} of {text!r} has changed {bounds()}"


def root_alone() -> None:
    for path in FOLDER.iterdir():
        mode = 0o400 if path.name == "wbs" else 0o600
        assert path.stat().st_mode & 0o7777 == mode, f"{path.name} has mode {path.stat().st_mode:o}"
    assert {path.name for path in FOLDER.iterdir()} == {*DEFAULTS, "wbs"}


def a_wb_shows_its_pace() -> None:
    """Within the bounds, and after a write what the device has made of it."""
    if core() == "c":
        raise ktap.Skip("the C core has no pace")
    with file_system("ext4") as root:
        # The second round looks at what the first has had written.
        for _ in range(2):
            with opened(root / "file") as fd:
                write_dontcache(fd, 0, bytes(MIB))
            until(lambda: counter() == (0, 0), 30, f"the counter is {counter()}")
            os.sync()
        lines = (FOLDER / "wbs").read_text().splitlines()
        paces = [found.groups() for found in map(WB.fullmatch, lines) if found]
        assert len(paces) == len(lines) > 0, f"not understood: {lines}"
        for name, delay, kick_at, _ in paces:
            assert DEFAULTS["least_ms"] <= int(delay) <= DEFAULTS["most_ms"], f"{name} waits {delay} ms"
            assert 0 < int(kick_at) <= DEFAULTS["most_kib"], f"{name} kicks at {kick_at} KiB"
        assert any(int(average) for *_, average in paces), f"no device was looked at: {lines}"


def a_small_group_kicks_early() -> None:
    """A quarter of what its own background limit is, and not of the system's."""
    if core() == "c":
        raise ktap.Skip("the C core has no pace")
    with file_system("ext4") as root, cgroup("small") as group:
        (group / "memory.max").write_text(str(48 * MIB))

        def write() -> None:
            with opened(root / "file") as fd:
                for offset in range(0, 32 * MIB, MIB):
                    write_dontcache(fd, offset, bytes(MIB))

        in_cgroup(group, write)
        until(lambda: counter() == (0, 0), 30, f"the counter is {counter()}")
        found = filter(None, map(WB.fullmatch, (FOLDER / "wbs").read_text().splitlines()))
        kick_at = sorted(int(wb[3]) for wb in found)
        assert 0 < kick_at[0] < DEFAULTS["least_kib"] <= kick_at[-1], f"they kick at {kick_at} KiB"
        os.sync()


def settle() -> None:
    """What a round has left before is looked at within a second, which would be the reason of the next."""
    time.sleep(1.5)


def why_a_round_began() -> None:
    """A page waits; many do not."""
    with file_system("xfs") as root, opened(root / "file") as fd, trace("writeback/writeback_start") as lines:
        for size, why in ((4096, "dontcache_deadline"), (16 * MIB, "dontcache")):
            if core() == "c":
                why = "dontcache"
            settle()
            before = len(lines())
            write_dontcache(fd, 0, bytes(size))
            until(lambda: counter() == (0, 0), 30, f"the counter is {counter()}")
            reasons = [REASON.search(line) for line in lines()[before:]]
            first = next((found[1] for found in reasons if found and found[1].startswith("dontcache")), "none")
            assert first == why, f"the first round for {size} bytes began for {first}"
        os.fsync(fd)


def a_rest_waits_for_more() -> None:
    """A round writes whole requests, another one soon after what is left of them, whatever is cached besides."""
    if core() == "c":
        raise ktap.Skip("the C core has no deadline")
    rest = 3 * REQUEST // 4
    with file_system("xfs") as root, opened(root / "file") as fd:
        os.ftruncate(fd, 8 * MIB)  # so that no change of the size is written besides
        os.fsync(fd)
        for size, whole, cached in ((REQUEST + rest, REQUEST, 0), (rest, rest, 0), (REQUEST + rest, REQUEST, 6 * MIB)):
            os.pwrite(fd, bytes(cached), 2 * MIB)
            os.fsync(fd)
            settle()
            with trace("writeback/writeback_start", "block/block_rq_issue") as lines:
                write_dontcache(fd, 0, bytes(size))
                until(lambda: counter() == (0, 0), 30, f"the counter is {counter()}")
                told = lines()
            begins = [number for number, line in enumerate(told) if "reason=dontcache" in line]
            reasons = [found[1] for number in begins if (found := REASON.search(told[number]))]
            assert reasons[0] == "dontcache_deadline", f"rounds for {reasons}"
            assert reasons[1:2] == (["dontcache_left"] if whole < size else []), f"{size} bytes took rounds for {reasons}"
            end = begins[1] if len(begins) > 1 else len(told)
            first = sum(int(found[1]) * 512 for line in told[:end] if (found := ISSUED.search(line)))
            assert first == whole, f"the first round wrote {first} of {size} bytes, with {cached} cached besides"


def who_goes_on_makes_whole_requests() -> None:
    """No round is followed by one for the few pages that came while it ran, or ends within a request."""
    if core() == "c":
        raise ktap.Skip("the C core writes whatever there is")
    size = 64 * MIB
    with file_system("xfs") as root, opened(root / "file") as fd:
        os.ftruncate(fd, size)
        os.fsync(fd)
        settle()
        with trace("block/block_rq_issue") as lines:
            for offset in range(0, size, PIECE):
                write_dontcache(fd, offset, bytes(PIECE))
            os.fsync(fd)
            sizes = [int(found[1]) * 512 for line in lines() if (found := ISSUED.search(line))]
        assert sum(sizes) >= size, f"{sum(sizes)} of {size} bytes were seen to be written"
        small = [size for size in sizes if size < REQUEST]
        assert len(small) <= len(sizes) // 20, f"of {len(sizes)} requests {len(small)} are small: {small}"


def a_new_disk_is_given_little() -> None:
    """A quarter of a portion, until it was seen to write; unless it says that it does not count."""
    if core() == "c":
        raise ktap.Skip("the C core has no pace")
    for counts, first in (1, MIB), (0, 4 * MIB):
        with NullBlock(64, SECTOR) as disk, file_system("ext4", disk.device) as root, opened(root / "file") as fd:
            os.sync()
            Path("/sys/block", Path(disk.device).name, "queue/iostats").write_text(f"{counts}")
            inode = f" ino={os.fstat(fd).st_ino} "
            with trace("writeback/writeback_single_inode") as lines:
                with flusher_held():
                    for offset in range(0, 4 * MIB, PIECE):
                        write_dontcache(fd, offset, bytes(PIECE))
                until(lambda fd=fd: left_of(fd) == 0, 30, "pages stay")  # type: ignore[misc]
                wrote = [int(found[1]) * PAGE for line in lines() if inode in line and (found := WROTE.search(line))]
        assert wrote[:1] == [first], f"iostats {counts}: the flusher wrote {wrote} bytes"


def c_has_none() -> None:
    """The files are there, and say what the other core would do."""
    if core() == "rust":
        raise ktap.Skip("the Rust core has a pace")
    assert bounds() == DEFAULTS


CASES = (
    what_can_be_is_taken,
    what_cannot_be_is_refused,
    root_alone,
    a_wb_shows_its_pace,
    a_small_group_kicks_early,
    why_a_round_began,
    a_rest_waits_for_more,
    who_goes_on_makes_whole_requests,
    a_new_disk_is_given_little,
    c_has_none,
)

if __name__ == "__main__":
    ktap.main("adaptive_bounds", [(case.__name__, case) for case in CASES])
