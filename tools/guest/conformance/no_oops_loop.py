# SPDX-License-Identifier: GPL-2.0
"""A loop device on a file of xfs, with buffered and direct I/O below, bare and with ext4."""

import os
from pathlib import Path

from lib import devices
from lib.dontcache import MIB, file_system, mounted, opened, pattern, run, write_dontcache
from lib.row import Verdict, main, tried

SIZE = 8 * MIB


def written(path: Path | str) -> bool:
    """Writes with DONTCACHE; is it there?"""
    with opened(path) as fd:
        for offset in range(0, SIZE, MIB):
            write_dontcache(fd, offset, pattern(offset, MIB))
        os.fsync(fd)
        return os.pread(fd, MIB, MIB) == pattern(MIB, MIB)


def loop() -> Verdict:
    wrong, ways = [], ("off", "on")
    for direct in ways:
        with file_system("xfs") as root, devices.loop(root / "backing", direct) as node:
            tried((Path("/sys/block") / Path(node).name / "loop/dio").read_text() == f"{int(direct == 'on')}\n", "both ways")
            if not written(node):
                wrong.append(f"bare, direct {direct}")
            run("mkfs.ext4", "-q", "-F", node)
            with mounted("ext4", node, root=devices.INNER) as inner:
                if not written(inner / "file"):
                    wrong.append(f"ext4, direct {direct}")
    return Verdict(not wrong, f"what differs: {'; '.join(wrong) or 'nothing'} of bare, ext4, direct {', '.join(ways)}")


main(loop)
