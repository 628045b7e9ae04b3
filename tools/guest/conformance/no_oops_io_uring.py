#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""io_uring, buffers fixed and not, with and without a kernel thread that submits."""

from __future__ import annotations

import itertools
import subprocess

from lib.dontcache import MOUNT, NVME, file_system, run, trace
from lib.row import PATIENCE, SHORT, Verdict, main, tried, waited

FIO = [
    "fio", "--name=verify", "--filename=/tmp/mnt/verify", "--ioengine=io_uring", "--iodepth=16", "--rw=randwrite",
    "--bsrange=4k-128k", "--size=8m", "--verify=crc32c", "--verify_state_save=0", "--randseed=7", "--minimal",
]  # fmt: skip


def unmounted() -> bool:
    """Takes the file system away. A worker gives back the files of a ring, some time after fio has ended."""
    return subprocess.run(["umount", MOUNT], capture_output=True, check=False).returncode == 0


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
            found = subprocess.run([*FIO, "--verify_only=1"], capture_output=True, text=True, check=False)
        runs += 1
        if found.returncode:
            said = found.stderr.strip().splitlines() or ["nothing"]
            wrong.append(f"{kind}, fixed buffers {fixed}, a thread {thread}: fio says {said[0]}")
    return Verdict(not wrong, "; ".join([f"{runs} runs of fio, verified after a remount", *wrong]))


if __name__ == "__main__":
    main(io_uring)
