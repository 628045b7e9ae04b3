# SPDX-License-Identifier: GPL-2.0
"""A file system is unmounted with dirty DONTCACHE pages, and lazily while a writer runs."""

import functools
from pathlib import Path

from lib.devices import null_timer
from lib.dontcache import MIB, MKFS, MOUNT, beside, for_a_while, mounted, opened, pattern, run, until, write_dontcache
from lib.row import SHORT, Verdict, main, on_each, tried

ROUNDS = 4 if SHORT else 10
SIZE = 2 * MIB
SECONDS = 0.5
"""How long the writer goes on at least."""


def write_for_a_while(path: Path) -> None:
    """Writes the file again and again."""
    data = pattern(0, SIZE)
    with opened(path) as fd:
        write_dontcache(fd, 0, data)
        for _ in for_a_while(SECONDS):
            write_dontcache(fd, 0, data)


def unmount(kind: str) -> Verdict:
    wrong, lazily = 0, 0
    MOUNT.mkdir(exist_ok=True)
    with null_timer() as node:
        run(*MKFS[kind], node)
        for number in range(ROUNDS):
            path = MOUNT / f"file{number}"
            run("mount", "-t", kind, node, MOUNT)
            if number % 2:
                with beside(functools.partial(write_for_a_while, path)):
                    until(lambda: path.exists() and path.stat().st_size == SIZE, 30, "the writer begins")
                    run("umount", "--lazy", MOUNT)
                    lazily += not path.exists()
            else:
                with opened(path) as fd:
                    write_dontcache(fd, 0, pattern(0, SIZE))
                run("umount", MOUNT)
            with mounted(kind, node):
                wrong += path.read_bytes() != pattern(0, SIZE)
    tried(lazily == ROUNDS // 2, "lazy unmounts")
    return Verdict(wrong == 0, f"{ROUNDS} unmounts, {lazily} of them lazy; {wrong} files differ")


main(lambda: on_each(unmount))
