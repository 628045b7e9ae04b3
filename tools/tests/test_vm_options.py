# SPDX-License-Identifier: GPL-2.0
"""The command lines of machines: what they mean, and the one line that a mistake gets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.vm import emulated, images, native, qemu
from rust_writeback.errors import Failure
from rust_writeback.vm.options import NvmeOptions, VmOptions


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--core", "cobol"], "rust and c"),
        (["--smp", "0"], "1 to"),
        (["--mem", "lots"], "512M or 2G"),
        (["--mem", "1M"], "at least 128M"),
        (["--icount", "--mem", "256M"], "at least 512M"),
        (["--colour"], "allowed: tools/vm [-h] [--core CORE]"),
        *[(["--nvme", bad], "size=4G, bps=12M, iops=2000 and queues=1") for bad in ("speed=1", "size", "bps=1.5M", "queues=0")],
    ],
)
def test_a_wrong_option_gets_one_line_with_the_allowed_ones(arguments: list[str], word: str) -> None:
    with pytest.raises(Failure) as caught:
        emulated._parse(arguments)[0].check()
    assert word in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.status == 2


def test_the_command_is_all_that_follows_the_dashes() -> None:
    options, command = emulated._parse(["--core", "c", "--append", "a=b c", "--", "echo", "--", "--core"])
    assert options.core == "c" and options.append == "a=b c"
    assert command == ["echo", "--", "--core"]


def line(accel: str, **options: object) -> str:
    wires = qemu.Wires(3, dict.fromkeys([*qemu.PORTS, "monitor"], 4), 6, Path("/console"))
    return " ".join(qemu.command(VmOptions(**options), accel, wires))  # type: ignore[arg-type]


def test_a_flush_takes_its_time_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A volatile cache is what QEMU has either way; the time is ours, since the host's drive takes any."""
    quick, slow = (line("tcg", flush_us=us) for us in (0, 1000))
    assert "cache=unsafe" in quick and "cache=writeback" in slow
    assert slow.startswith(f"env LD_PRELOAD={images.SLOW_FLUSH} FLUSH_US=1000 {quick.split()[0]}")
    library = tmp_path / "slow_flush.so"
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    images.ensure_program(images.SLOW_FLUSH_SOURCE, library, "-shared", "-fPIC", "-nostdlib")
    program = "import os, time; a = time.monotonic(); os.fdatasync(1); print(time.monotonic() - a)"
    environment = {**os.environ, "LD_PRELOAD": str(library), "FLUSH_US": "300000"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    # A pipe cannot be synced, so it was not tried.
    assert 0.3 <= float(done.stdout) < 30 and done.stderr == ""


def test_a_drive_on_the_command_line() -> None:
    throttled = line("tcg", nvme=NvmeOptions.parse("size=1G,bps=12M,iops=2000,queues=1"))
    for words in ("throttling.bps-total=12582912,throttling.iops-total=2000", "max_ioqpairs=1", "rust_writeback.core=rust"):
        assert words in throttled


def test_the_native_machine_can_write_nothing_but_its_memory() -> None:
    command = native.enclosed(VmOptions(mem="1G"), ["linux"], [0])
    script = command[command.index("-euc") + 1]
    assert script.index("ro=recursive /") < script.index("tmpfs /tmp") < script.index('"$@"')
    assert command[-3:] == ["native", str((1 << 30) + native.SPARE), "linux"]


@pytest.mark.parametrize(("wanted", "there", "chosen"), [(2, [3, 5, 7], "5,7"), (4, [0, 1], "0,1")])
def test_the_native_machine_has_as_many_cpus_as_it_believes(wanted: int, there: list[int], chosen: str) -> None:
    assert native.enclosed(VmOptions(smp=wanted), [], there)[:3] == ["taskset", "--cpu-list", chosen]
