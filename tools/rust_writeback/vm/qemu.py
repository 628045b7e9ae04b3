# SPDX-License-Identifier: GPL-2.0
"""The command line of QEMU for one boot."""

import functools
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..arch import ARM64, X86, Arch
from . import images
from .options import VmOptions, amount

SERIAL = "rust-writeback"
PORTS = ("control", "stdout", "stderr")
"""Lines to PID 1, in their order; tools/guest/init.c has the same one."""


@dataclass(frozen=True)
class Board:
    """What an architecture's machine is for QEMU: a program, a board, a CPU, a console.

    The CPU is without what is dear to emulate: a fifth level of page tables, string instructions that the
    kernel would use byte by byte because they are fast in silicon; of arm64, one with atomic instructions (LSE)
    and without signed pointers.
    """

    program: str
    machine: str
    cpu: str
    counted_cpu: str
    """The same without what would bring chance into a counted run."""
    parameters: str


BOARDS = {
    X86: Board(
        "qemu-system-x86_64",
        "q35,usb=off,vmport=off,smbus=off,sata=off",
        "max,-la57,-erms,-fsrm,-fsrs,-fzrm",
        "max,-la57,-erms,-fsrm,-fsrs,-fzrm,-rdrand,-rdseed",
        "console=ttyS0 unknown_nmi_panic tsc=reliable no_timer_check",
    ),
    ARM64: Board(
        "qemu-system-aarch64",
        "virt,gic-version=3,usb=off",
        "neoverse-n1",
        # A tick of its counter is a nanosecond, too.
        "neoverse-n1,cntfrq=1000000000",
        "console=ttyAMA0",
    ),
}

STOPS = (
    "loglevel=7 panic=-1 oops=panic hung_task_panic=1 softlockup_panic=1 sysctl.kernel.panic_on_rcu_stall=1"
    " watchdog_thresh=30 rcupdate.rcu_cpu_stall_timeout=60"
)
"""A kernel stops at its first mistake."""
KERNEL_PARAMETERS = f"{STOPS} nmi_watchdog=panic mitigations=off sysctl.kernel.hardlockup_sys_info=timers,blocked_tasks,all_bt"
"""Under QEMU it waits for nothing that is not there.

Of a CPU that is deaf it tells what timers there are, and who waits: it may be idle, and nothing else is known then.
"""


@dataclass(frozen=True)
class Wires:
    """File descriptors that QEMU inherits, and files that it opens."""

    initramfs: int
    lines: dict[str, int]
    drive: int | None
    console: Path
    terminal: bool = False


@functools.cache
def version(arch: Arch = X86) -> str:
    """QEMU's version, as it tells it."""
    output = subprocess.run([BOARDS[arch].program, "--version"], check=True, capture_output=True, text=True).stdout
    return output.partition("version ")[2].partition("\n")[0]


ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TERM": "linux",
}


def environment(options: VmOptions) -> dict[str, str]:
    """What the guest's PID 1 has to know."""
    variables = dict(ENVIRONMENT)
    if not options.icount:
        variables["VM_ROOT"] = "/dev/vda"
    if options.check_core:
        variables["VM_CORE"] = options.core
    if options.share:
        variables["VM_SHARE"] = "1"
    if options.nvme:
        variables["VM_NVME"] = "1"
    return variables


def _machine(options: VmOptions, accel: str) -> list[str]:
    """The board, its CPUs and its clock."""
    board = BOARDS[options.arch]
    arguments = ["-machine", board.machine, "-nodefaults", "-no-user-config"]
    arguments += ["-display", "none", "-nic", "none", "-no-reboot", "-action", "panic=none"]
    arguments += ["-smp", str(options.smp), "-m", f"{amount(options.mem) >> 20}M"]
    if options.icount:
        # A guest nanosecond is one instruction, and nothing comes from the host's clock or chance.
        arguments += ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]
        return [*arguments, "-rtc", "base=2026-01-01,clock=vm", "-cpu", board.counted_cpu]
    if accel == "kvm":
        return [*arguments, "-accel", "kvm", "-cpu", "host"]
    return [*arguments, "-accel", "tcg,thread=multi", "-cpu", board.cpu]


def _devices(options: VmOptions, wires: Wires) -> list[str]:
    """The console, the ports to PID 1, the root, the test drive and the share."""
    # Under icount a device must answer at once, not when the host's scheduler likes.
    fast = ",ioeventfd=off" if options.icount else ""
    arguments = ["-chardev", f"file,id=console,path={wires.console}", "-serial", "chardev:console"]
    arguments += ["-chardev", f"socket,id=monitor,fd={wires.lines['monitor']}", "-mon", "chardev=monitor,mode=control"]
    arguments += ["-device", "pvpanic-pci", "-device", f"virtio-serial-pci{fast}"]
    for name in PORTS:
        arguments += ["-chardev", f"socket,id={name},fd={wires.lines[name]}"]
        arguments += ["-device", f"virtserialport,chardev={name},name={name}"]
    if wires.terminal:
        arguments += ["-chardev", "stdio,id=terminal,signal=off", "-device", "virtconsole,chardev=terminal"]
    if not options.icount:
        arguments += ["-drive", f"if=none,id=root,format=raw,readonly=on,file={images.made(options.arch, images.IMAGE)}"]
        arguments += ["-device", "virtio-blk-pci,drive=root"]
    if options.nvme and wires.drive is not None:
        nvme = options.nvme
        drive = f"if=none,id=nvme,format=raw,cache={'writeback' if options.flush_us else 'unsafe'}"
        drive += ",aio=threads,discard=unmap"
        drive += f",file=/proc/self/fd/{wires.drive}"
        drive += f",throttling.bps-total={amount(nvme.bps)}" if nvme.bps else ""
        drive += f",throttling.iops-total={amount(nvme.iops)}" if nvme.iops else ""
        queues = f",max_ioqpairs={nvme.queues}" if nvme.queues else ""
        arguments += ["-drive", drive, "-device", f"nvme,serial={SERIAL},drive=nvme{queues}"]
    if options.share:
        share = f"local,id=share,security_model=none,multidevs=remap,path={options.share}"
        arguments += ["-fsdev", share, "-device", f"virtio-9p-pci,fsdev=share,mount_tag=share{fast}"]
    return [*arguments, *options.devices]


def command(options: VmOptions, accel: str, wires: Wires) -> list[str]:
    """The whole command line."""
    parameters = f"{BOARDS[options.arch].parameters} {KERNEL_PARAMETERS} rust_writeback.core={options.core}"
    if options.icount:
        parameters += " nokaslr rootfstype=ramfs"
    kernel = ["-kernel", str(options.kernel), "-initrd", f"/proc/self/fd/{wires.initramfs}"]
    kernel += ["-append", f"{parameters} {options.append}".strip()]
    flush = ["env", f"LD_PRELOAD={images.SLOW_FLUSH}", f"FLUSH_US={options.flush_us}"] if options.flush_us else []
    return [*flush, BOARDS[options.arch].program, *_machine(options, accel), *_devices(options, wires), *kernel]


def last_words(stderr: str, returncode: int) -> str:
    """What QEMU said last, or else how it ended."""
    lines = [line for line in stderr.strip().splitlines() if "warning:" not in line]
    if lines:
        return re.sub(r"^qemu-system-\w+: ", "", lines[-1])
    return f"no message, {signal.strsignal(-returncode) if returncode < 0 else f'status {returncode}'}"
