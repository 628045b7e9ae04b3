# SPDX-License-Identifier: GPL-2.0
"""The native machine: the kernel as a program of the build root, at the speed of the CPU.

User-mode Linux needs neither KVM nor an emulator. Its root file system is the build root through hostfs, mounted
for reading only. All that its process sees of the host is read-only, too. What it writes goes to its own memory,
which ends with the process.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import paths
from ..build.variants import NATIVE
from ..errors import Failure
from . import console, emulated, images, machine, qemu
from .emulated import VmFailure, VmResult
from .options import VmOptions, amount

BOOT_SECONDS, BEAT_SECONDS, WHOLE_SECONDS = 60.0, 120.0, 3600.0

ENVIRONMENT = qemu.ENVIRONMENT | {"PATH": f"{images.LOAD.parent}:{qemu.ENVIRONMENT['PATH']}", "VM_ROOT": "hostfs"}

SPARE = 64 << 20
"""Bytes that the memory's file system has besides."""

ENCLOSED = """
mount -o remount,bind,ro=recursive /
mount -t tmpfs -o "mode=0700,size=$1,huge=within_size" tmpfs /tmp 2>/dev/null ||
	mount -t tmpfs -o "mode=0700,size=$1" tmpfs /tmp
shift
ulimit -c 0
cd /tmp
TMPDIR=/tmp "$@" >&2 || exit $?
"""
"""All that the process sees becomes read-only but the memory of the machine.

The shell stays: it is the init of a process namespace, so that nothing outlives
it, and a kernel that panics kills itself, which an init cannot.
"""

WARM = """
mount -o remount,size=100% /mnt
megabytes=$(awk '/^MemAvailable/ { print int($2 / 1024) - 32 }' /proc/meminfo)
if [ "$megabytes" -gt 0 ]; then
	dd if=/dev/zero of=/mnt/warm bs=1M count="$megabytes" status=none
	rm /mnt/warm
fi
mount -o remount,size=50% /mnt
exec "$@"
"""
"""Has the host give all of the memory, which it does when it is first written to."""


def linux(options: VmOptions, initramfs: int, ports: Mapping[str, int]) -> list[str]:
    """The command line of the kernel; the numbers are file descriptors that it inherits."""
    return [
        str(NATIVE.image),
        f"mem={amount(options.mem) >> 20}M",
        f"ncpus={options.smp}",
        "seccomp=on",
        "uml_dir=/tmp/",
        f"initrd=/proc/self/fd/{initramfs}",
        "con0=null,fd:1",
        # What is read from a line is nothing. If it were the port, the kernel would hang up when we do.
        *(f"ssl{number}=null,fd:{ports[name]}" for number, name in enumerate(qemu.PORTS)),
        *qemu.STOPS.split(),
        f"rust_writeback.core={options.core}",
    ]


def enclosed(options: VmOptions, command: list[str], cpus: Sequence[int]) -> list[str]:
    """A command in a process and mount namespace of its own, in which it can write to its memory only.

    It runs on as many of the CPUs as it believes to have. The kernel and its programs are processes
    that take turns: on CPUs apart each system call would wait for another CPU to wake up.
    """
    chosen = ["taskset", "--cpu-list", ",".join(map(str, cpus[-options.smp :]))]
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [*chosen, *alone, "sh", "-euc", ENCLOSED, "native", str(amount(options.mem) + SPARE), *command]


def run(options: VmOptions, command: list[str], stdout: machine.Sink) -> VmResult:
    """Boot with this core, memory and CPUs, run the command once all memory has been used, and wait for its end.

    Its output goes to the sink, what it says on stderr into the result.
    """
    options.check()
    there = int(Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()[0]) << 10
    if amount(options.mem) + SPARE > there:
        raise Failure(f"{options.mem} of memory: the host has {there >> 20}M left; give the native machine less", 2)
    if not NATIVE.image.exists():
        raise Failure(f"{NATIVE.image.relative_to(paths.PROJECT)} is missing; run: make bench NATIVE=1")
    images.ensure_programs()
    log = console.new_log("native")
    with contextlib.ExitStack() as stack:
        limits = (BOOT_SECONDS, BEAT_SECONDS, WHOLE_SECONDS)
        host = stack.enter_context(machine.Guest(stdout, None, *limits, log.open("w+b")))
        words = ["sh", "-euc", WARM, "warm", *command]
        initramfs = stack.enter_context(images.initramfs(words, {**ENVIRONMENT, "VM_CORE": options.core}))
        arguments = linux(options, initramfs.fileno(), host.lines)
        cpus = sorted(os.sched_getaffinity(0))
        host.start(enclosed(options, arguments, cpus), [initramfs.fileno()], terminal=False)
        story = host.run()
    judge(options, story, log)
    return emulated.result(host, story.qemu_stderr, log, "native", arguments, "none")


def judge(options: VmOptions, story: machine.Story, log: Path) -> None:
    """Raise unless the run came through: silence about the end is never a success."""
    emulated.judge_guest(story, story.qemu_stderr, log, options.core)
    if story.status is None:
        said = console.tail(story.qemu_stderr, 1).strip() or "without a word"
        raise VmFailure("qemu", f"the kernel ended with status {story.returncode} before the command did: {said}", log)
