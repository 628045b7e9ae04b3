# SPDX-License-Identifier: GPL-2.0
"""tools/vm against the built kernel: what comes out, and how each kind of death is told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.arch import X86
from rust_writeback.vm import emulated, qemu
from rust_writeback.vm.options import VmOptions

if not paths.BZIMAGE.exists():
    pytest.skip("build/bzImage is not there; make kernel builds it", allow_module_level=True)

SMALL = VmOptions(mem="512M", nvme=None)


def boot(command: str, options: VmOptions = SMALL) -> emulated.VmResult:
    return emulated.run(options, [command], again=emulated.from_scratch)


def tool(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rust_writeback.vm.emulated", *arguments]


def test_output_and_status_come_back_exactly(tmp_path: Path) -> None:
    """One boot for all that a command may do to its outputs."""
    (tmp_path / "bytes").write_bytes(bytes(range(256)) * 3)
    script = """
        cat /share/bytes; echo err >&2
        head -c 20000000 /dev/zero | tr '\\0' x
        read -r line && echo "stdin is not empty: $line"
        echo kernel says hello >/dev/kmsg
        echo made in the guest >/share/made
        touch /usr/made 2>/dev/null && echo "the root that guests share can be written"
        (sleep 1000; echo never) &
        exit 41
    """
    result = boot(script, VmOptions(mem="512M", nvme=None, share=tmp_path))
    assert result.status == 41
    assert result.stdout[:768] == bytes(range(256)) * 3
    assert result.stdout[768:] == b"x" * 20_000_000
    assert result.stderr == b"err\n"
    assert (tmp_path / "made").read_text() == "made in the guest\n"
    assert "kernel says hello" in result.console.read_text()
    assert result.accel in ("kvm", "tcg") and result.core == "rust" and result.kernel
    assert not result.complaint
    assert result.qemu_command[0].endswith(qemu.BOARDS[X86].program)


# What was written a moment before the end has left the guest.
CRASH = "echo before; sleep 1; cd /sys/kernel/debug/provoke-crash; echo {} >DIRECT; sleep 300"


@pytest.mark.parametrize(
    ("kind", "command", "append"),
    [
        ("oops", CRASH.format("EXCEPTION"), ""),
        ("oops", CRASH.format("BUG"), ""),
        ("panic", "echo before; sleep 1; echo c >/proc/sysrq-trigger", ""),
        ("hang", CRASH.format("SOFTLOCKUP"), "watchdog_thresh=3"),
        ("hang", CRASH.format("HARDLOCKUP"), "watchdog_thresh=3 rcupdate.rcu_cpu_stall_timeout=5"),
        ("hang", CRASH.format("HUNG_TASK"), "sysctl.kernel.hung_task_timeout_secs=3"),
        ("qemu", "echo before; sleep 1; echo o >/proc/sysrq-trigger; sleep 300", ""),
    ],
)
def test_how_it_died(kind: str, command: str, append: str) -> None:
    output = bytearray()
    options = VmOptions(mem="512M", nvme=None, append=append)
    with pytest.raises(emulated.VmFailure) as caught:
        emulated.run(options, [command], stdout=output.extend, again=lambda _: output.clear())
    assert caught.value.kind == kind and not caught.value.qemu_died
    assert caught.value.status == {"oops": 125, "panic": 126, "hang": 127, "qemu": 128}[kind]
    assert "\n" not in str(caught.value)
    assert output == b"before\n"
    if "HARDLOCKUP" in command:
        assert "expires_next" in caught.value.console.read_text()


def test_a_silent_guest_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One CPU that spins with interrupts off silences PID 1, whatever the watchdogs say."""
    monkeypatch.setattr(emulated, "BEAT_SECONDS", 8.0)
    options = VmOptions(mem="512M", nvme=None, smp=1, append="nowatchdog rcupdate.rcu_cpu_stall_suppress=1")
    with pytest.raises(emulated.VmFailure, match="silent") as caught:
        boot(CRASH.format("HARDLOCKUP"), options)
    assert caught.value.kind == "hang"
    assert "NMI" in caught.value.console.read_text()


def test_a_warning_is_reported() -> None:
    result = boot("echo WARNING >/sys/kernel/debug/provoke-crash/DIRECT")
    assert result.status == 0 and result.complaint


def qemus() -> set[str]:
    """The running processes of QEMU. A dead one that nobody waited for has no command line."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"qemu-system" in (folder / "cmdline").read_bytes().split(b"\0")[0]:
                found.add(folder.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_interrupted(sent: int, status: int) -> None:
    """However we are stopped, QEMU goes and no file stays."""
    files, running = set(os.listdir(paths.BUILD)), qemus()
    with subprocess.Popen(tool("--", "echo ready; sleep 300"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout and run.stdout.readline() == b"ready\n"
        assert qemus() > running
        run.send_signal(sent)
        assert run.wait(20) == status
    deadline = time.monotonic() + 5
    while qemus() - running and time.monotonic() < deadline:
        time.sleep(0.05)
    assert qemus() <= running
    assert set(os.listdir(paths.BUILD)) == files


def test_two_at_once() -> None:
    """Guests share their root and nothing else."""
    runs = [subprocess.Popen(tool("--", f"cat /proc/sys/kernel/random/uuid; exit {n}"), stdout=-1) for n in (3, 4)]
    outputs = {run.communicate()[0] for run in runs}
    assert [run.returncode for run in runs] == [3, 4]
    assert len(outputs) == 2


def test_counted_time_repeats_to_the_digit() -> None:
    """Two boots give the same clock after the same work."""
    options = VmOptions(mem="1G", smp=2, nvme=None, icount=True)
    script = "for i in 1 2 3; do date +%s.%N; done; head -c 300000 /dev/urandom | sha256sum"
    first, second = (boot(script, options).stdout for _ in range(2))
    assert first == second


BINARY = bytes(range(0x80, 0xC0)).decode(errors="surrogateescape")
BAD = ["", "x" * 200, BINARY, "RUST", "rus", "rustc", "rust,c", "%p%s%n", "0", '"rust c"']


@pytest.mark.parametrize("core", ["rust", "c"])
def test_a_bad_boot_parameter_warns_and_changes_nothing(core: str) -> None:
    """One boot has them all, after the core that was asked for."""
    given = [f"rust_writeback.core={value}" for value in BAD] + ["rust_writeback.core"]
    ask = "cat /sys/kernel/debug/rust_writeback/core /sys/module/rust_writeback/parameters/core"
    result = boot(ask, VmOptions(core=core, mem="512M", nvme=None, append=" ".join(given)))
    assert (result.status, result.stdout.decode()) == (0, f"{core}\n{core}\n")
    assert not result.complaint
    told = result.console.read_text(errors="replace").count("' invalid for parameter `rust_writeback.core'")
    assert told == len(given), f"{told} values are told to be bad"
