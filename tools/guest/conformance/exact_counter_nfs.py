# SPDX-License-Identifier: GPL-2.0
"""An NFS server writes with DONTCACHE to a drive that fails; the client gets one error."""

import errno
import os

from lib.devices import BAD, TIMER, null_block
from lib.dontcache import MIB, PAGE, cached_pages, file_system, opened, pattern, start_writeback, sync
from lib.nfs import serve_by, served
from lib.row import NOTHING, Verdict, exact, main, on_each, quiet_counter, synced_counter, told, tried
from lib.walk import sectors


def send(fd: int) -> int:
    """Dirties the first MiB of the server's file, and asks for no COMMIT; the error that the client is told."""
    assert os.pwrite(fd, pattern(0, MIB), 0) == MIB
    try:
        start_writeback(fd, 0, MIB, wait=True)
    except OSError as error:
        return error.errno or 0
    return 0


def server(kind: str) -> Verdict:
    with null_block(TIMER) as disk:
        with (
            file_system(kind, disk.device) as root,
            served(root) as mounted,
            opened(mounted / "file") as fd,
            opened(root / "file", os.O_RDONLY) as behind,
        ):
            serve_by("dontcache")
            assert not send(fd) and not sync(fd), "a device that is well fails"
            tried(cached_pages(behind) < MIB // PAGE, "a server that writes with DONTCACHE")
            with disk.failing(*sectors(behind, BAD)):
                heard = [send(fd), sync(fd), sync(fd)]
                failed = quiet_counter(disk.device)
            # A server compares what a WRITE meets with the time of its open(), and may tell the old error again.
            send(fd)
            assert not sync(fd), "a device that is well again fails"
            differs = os.pread(behind, MIB, 0) != pattern(0, MIB)
        end = synced_counter(disk.device)
    # The reply to a WRITE may tell it first, where the pages were written so soon.
    once = heard[1:] == [errno.EIO, 0]
    kept = exact(failed) and once and end == NOTHING and not differs
    errors = ", ".join(errno.errorcode.get(error, "no error") for error in heard)
    differing = ", the file differs" if differs else ""
    return Verdict(kept, f"{errors}, failed {told(failed)}, synced {told(end)}{differing}")


main(lambda: on_each(server))
