# SPDX-License-Identifier: GPL-2.0
"""A loop device on a file of xfs, with buffered and direct I/O below, bare and with ext4."""

from pathlib import Path

from lib import devices
from lib.dontcache import MIB, file_system, is_there, opened, pattern, write_dontcache
from lib.row import Verdict, main, on_each, tried

SIZE = 8 * MIB


def written(path: Path | str) -> bool:
    """Writes with DONTCACHE; is it there?"""
    with opened(path) as fd:
        for offset in range(0, SIZE, MIB):
            write_dontcache(fd, offset, pattern(offset, MIB))
        return is_there(fd, MIB, pattern(MIB, MIB))


def loop(direct: str) -> Verdict:
    with file_system("xfs") as root, devices.loop(root / "backing", direct) as node:
        tried((Path("/sys/block") / Path(node).name / "loop/dio").read_text() == f"{int(direct == 'on')}\n", "both ways")
        right = {"bare": written(node)}
        with file_system("ext4", node, root=devices.INNER) as inner:
            right["ext4"] = written(inner / "file")
    return Verdict(all(right.values()), ", ".join(f"{kind} {'right' if each else 'differs'}" for kind, each in right.items()))


# With direct I/O below, and without.
main(lambda: on_each(loop, ("off", "on")))
