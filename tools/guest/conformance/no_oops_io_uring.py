# SPDX-License-Identifier: GPL-2.0
"""io_uring with and without fixed buffers, and with and without a submission thread; reads that must not wait."""

import itertools
import mmap
import os
import subprocess

from lib.dontcache import MIB, MOUNT, NVME, PAGE, RWF_DONTCACHE, file_system, opened, run, trace, waited
from lib.row import PATIENCE, SHORT, Verdict, main, tried
from lib.ways import IORING_OP_READ, by_io_uring

FIO = [
    "fio", "--name=verify", "--filename=/tmp/mnt/verify", "--ioengine=io_uring", "--iodepth=16", "--rw=randwrite",
    "--bsrange=4k-128k", "--size=8m", "--verify=crc32c", "--verify_state_save=0", "--randseed=7", "--minimal",
]  # fmt: skip


def unmounted() -> bool:
    """Takes the file system away. A worker gives back the files of a ring, some time after fio has ended."""
    return subprocess.run(["umount", MOUNT], capture_output=True, check=False).returncode == 0


def nowait_reads() -> list[str]:
    """What is wrong with reads that must not wait. They find every other page cached."""
    waits, found, wrong = 0, mmap.mmap(-1, PAGE), []
    with opened(MOUNT / "verify", os.O_RDONLY) as fd:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        for offset in range(0, MIB, PAGE):
            is_cached = bool(offset // PAGE % 2) and len(os.pread(fd, PAGE, offset)) == PAGE
            try:
                took = by_io_uring(fd, found, offset, os.RWF_NOWAIT, IORING_OP_READ)
            except BlockingIOError:
                waits, took = waits + 1, 0
            right = bytearray(PAGE)
            os.preadv(fd, [right], offset, RWF_DONTCACHE)
            if took not in ((PAGE,) if is_cached else (0, PAGE)) or took and found[:] != right:
                wrong.append(f"a read at {offset} that must not wait took {took} bytes")
    tried(waits or wrong, "reads that would have to wait")
    return wrong[:3]


def io_uring() -> Verdict:
    runs, wrong = 0, []
    for kind, fixed, thread in itertools.product(("ext4", "xfs"), (0, 1), (0, 1)):
        if SHORT and fixed != thread:
            continue
        with file_system(kind), trace("writeback/writeback_start") as lines:
            run(*FIO, "--uncached=1", "--do_verify=0", f"--fixedbufs={fixed}", f"--sqthread_poll={thread}")
            begun = waited(lambda: any("reason=dontcache" in line for line in lines()), PATIENCE)
            tried(begun is not None, "a DONTCACHE write by io_uring")
            assert waited(unmounted, PATIENCE) is not None, "the file system stays busy"
            run("mount", "-t", kind, NVME, MOUNT)
            wrong += nowait_reads()
            found = subprocess.run([*FIO, "--verify_only=1"], capture_output=True, text=True, check=False)
        runs += 1
        if found.returncode:
            said = found.stderr.strip().splitlines() or ["nothing"]
            wrong.append(f"{kind}, fixed buffers {fixed}, a thread {thread}: fio says {said[0]}")
    return Verdict(not wrong, "; ".join([f"{runs} runs of fio, verified after a remount", *wrong]))


main(io_uring)
