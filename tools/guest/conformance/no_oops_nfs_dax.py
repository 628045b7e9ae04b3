# SPDX-License-Identifier: GPL-2.0
"""An NFS server writes with DONTCACHE to a file without a page cache (DAX), whose inode may have no wb"""

import os
from pathlib import Path

from lib.dontcache import MIB, counter, file_system, opened, pattern, write_dontcache
from lib.nfs import serve_by, served
from lib.row import NOTHING, Verdict, main, told

DRIVE, MODE = "/dev/pmem0", "dax=always"


def server() -> Verdict:
    with file_system("xfs", DRIVE, mode=MODE) as root, served(root) as mounted:
        # On a drive that cannot do it, xfs mounts without DAX.
        assert MODE in Path("/proc/mounts").read_text()
        serve_by("dontcache")
        with opened(mounted / "file") as fd, opened(root / "file", os.O_RDONLY) as behind:
            write_dontcache(fd, 0, pattern(0, MIB))
            os.fsync(fd)
            right = os.pread(behind, MIB, 0) == pattern(0, MIB)
        counted = counter(DRIVE)
    return Verdict(right and counted == NOTHING, f"the data is {'right' if right else 'wrong'}, {told(counted)} counted")


main(server, breaks_c=True, stacks=True)
