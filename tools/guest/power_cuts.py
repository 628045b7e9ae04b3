# SPDX-License-Identifier: GPL-2.0
"""The load that power is cut from, and the check of what it had acknowledged.

    power_cuts.py KIND SEED ROUND ROUNDS

Round 0 makes the file system; each other begins with the check of the one before;
the last has no load of its own. Every writer has a file, and a script that follows
from its seed. After a few steps it syncs, and acknowledges them by making a folder
on the host: the call returns when the host has it, and only then the writer goes on.
So a file has all that is acknowledged, and of the steps that follow it those up to
the next sync in part: never more, whenever the power went.

The kind nfs is xfs behind an NFS server that writes with DONTCACHE; its client asks
for no more than a COMMIT.
"""

import itertools
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lib.dontcache import MIB, MKFS, MOUNT, NVME, PAGE, RWF_DONTCACHE, counter, forked, opened, run
from lib.nfs import serve_by, served

WRITERS = 6
STEPS = 3
"""How many steps one sync makes sure of."""
LONGEST = 128 * 1024
LARGEST = 4 * MIB

ACKNOWLEDGED = Path("/share/acknowledged")
NFS, SERVED = "nfs", "xfs"
FSCK = {"xfs": ["xfs_repair", "-n"], "ext4": ["e2fsck", "-f", "-n"]}


@dataclass(frozen=True)
class Step:
    """A write of data at an offset, or a truncation to it."""

    offset: int
    data: bytes | None
    flags: int = 0

    def do(self, fd: int, has_dontcache: bool) -> None:
        """To the file, which may have no DONTCACHE of its own."""
        if self.data is None:
            os.ftruncate(fd, self.offset)
        else:
            written = os.pwritev(fd, [self.data], self.offset, self.flags if has_dontcache else 0)
            assert written == len(self.data), f"wrote {written} of {len(self.data)} bytes"

    def do_to(self, content: bytes) -> bytes:
        """To what the file should hold."""
        if self.data is None:
            return content[: self.offset]
        return content[: self.offset] + self.data + content[self.offset + len(self.data) :]


def script(seed: str) -> Iterator[Step]:
    """Appends, overwrites and truncations, buffered and with DONTCACHE, at no boundary of anything."""
    noise = random.Random(seed)
    size = 0
    while True:
        kind = noise.choices(("append", "overwrite", "truncate"), (5, 5, 1))[0]
        if size > LARGEST or (kind == "truncate" and size):
            size = noise.randrange(size)
            yield Step(size, None)
            continue
        offset = noise.randrange(size) if kind == "overwrite" and size else size
        data = noise.randbytes(noise.randint(1, LONGEST))
        size = max(size, offset + len(data))
        yield Step(offset, data, noise.choice((0, RWF_DONTCACHE)))


def write(path: Path, acknowledged: Path, seed: str, has_dontcache: bool) -> None:
    """Follows the script until the power goes."""
    steps = script(seed)
    with opened(path) as fd:
        for number in itertools.count(1):
            for step in itertools.islice(steps, STEPS):
                step.do(fd, has_dontcache)
            (os.fsync if number % 2 else os.fdatasync)(fd)
            (acknowledged / str(number)).mkdir()


def wrong(found: bytes, states: list[bytes]) -> str:
    """What of the file is in none of its possible states; nothing if all of it is in one.

    Pages reach the drive when they like, and while they are written to.
    """
    sizes = [len(state) for state in states]
    if not min(sizes) <= len(found) <= max(sizes):
        return f"it has {len(found)} bytes, which should be {min(sizes)} to {max(sizes)}"
    bad = 0
    for start in range(0, len(found), PAGE):
        page = found[start : start + PAGE]
        possible = [state[start : start + len(page)].ljust(len(page), b"\0") for state in states]
        if page not in possible:
            bad += sum(byte not in values for byte, values in zip(page, zip(*possible, strict=True), strict=True))
    return f"{bad} of its {len(found)} bytes are wrong" if bad else ""


def check(root: Path, seed: str) -> int:
    """All that was acknowledged is there; returns how many bytes that are."""
    total, problems = 0, []
    for writer in range(WRITERS):
        numbers = [int(folder.name) for folder in (ACKNOWLEDGED / seed / str(writer)).iterdir()]
        last = max(numbers, default=0)
        steps = script(f"{seed}.{writer}")
        content = b""
        for step in itertools.islice(steps, last * STEPS):
            content = step.do_to(content)
        total += len(content)
        states = [content]
        for step in itertools.islice(steps, STEPS):
            states.append(step.do_to(states[-1]))
        if problem := wrong((root / str(writer)).read_bytes(), states):
            problems.append(f"writer {writer}, acknowledged {last} times: {problem}")
    assert not problems, "; ".join(problems)
    return total


def load(root: Path, seed: str, has_dontcache: bool = True) -> None:
    """Writes until the power goes, and tells the counter and the taint again and again."""
    for writer in range(WRITERS):
        (root / str(writer)).write_bytes(b"")
        (ACKNOWLEDGED / seed / str(writer)).mkdir(parents=True)
    os.sync()
    for writer in range(WRITERS):
        acknowledged = ACKNOWLEDGED / seed / str(writer)
        forked(partial(write, root / str(writer), acknowledged, f"{seed}.{writer}", has_dontcache))
    while os.waitpid(-1, os.WNOHANG) == (0, 0):
        counted, _ = counter()
        taint = Path("/proc/sys/kernel/tainted").read_text().strip()
        print("load", counted, taint, flush=True)
        time.sleep(0.02)
    raise AssertionError("a writer has ended")


def main(kind: str, seed: str, number: int, rounds: int) -> None:
    """One round."""
    behind_nfs, kind = kind == NFS, SERVED if kind == NFS else kind
    MOUNT.mkdir(exist_ok=True)
    if number == 0:
        run(*MKFS[kind], NVME)
    # Replays the journal.
    run("mount", "-t", kind, NVME, MOUNT)
    if number > 0:
        print("checked", check(MOUNT, f"{seed}.{number - 1}"), flush=True)
        run("umount", MOUNT)
        run(*FSCK[kind], NVME)
        run("mount", "-t", kind, NVME, MOUNT)
    if number < rounds and behind_nfs:
        with served(MOUNT) as root:
            serve_by("dontcache")
            load(root, f"{seed}.{number}", has_dontcache=False)
    elif number < rounds:
        load(MOUNT, f"{seed}.{number}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
