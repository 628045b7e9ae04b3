# SPDX-License-Identifier: GPL-2.0
"""The native machine: its command line, and what is made of how it ended."""

from dataclasses import replace

import pytest
from rust_writeback import paths
from rust_writeback.vm import machine, native
from rust_writeback.vm.emulated import VmFailure

LOG = paths.LOG / "native.log"
DONE = machine.Story(kernel="7.3.4", core="rust", status=0)

FAULT = "[  1.0] Kernel panic - not syncing: Kernel mode fault at addr 0x0, ip 0x60001000\n"
NO_ROOM = "[  1.0] Bus error - the host /dev/shm or /tmp mount\n[  1.0] Kernel panic - not syncing: Kernel mode signal 7\n"


def test_nothing_can_be_written_but_its_memory() -> None:
    command = native.enclosed(native.Options(mem="1G"), ["linux"], [0])
    script = command[command.index("-euc") + 1]
    assert script.index("ro=recursive /") < script.index("tmpfs /tmp") < script.index('"$@"')
    assert command[-3:] == ["native", str((1 << 30) + native.SPARE), "linux"]


@pytest.mark.parametrize(("wanted", "there", "chosen"), [(2, [3, 5, 7], "5,7"), (4, [0, 1], "0,1")])
def test_it_has_as_many_cpus_as_it_believes(wanted: int, there: list[int], chosen: str) -> None:
    assert native.enclosed(native.Options(cpus=wanted), [], there)[:3] == ["taskset", "--cpu-list", chosen]


def test_a_run_that_came_through() -> None:
    native.judge(native.Options(), replace(DONE, status=3, qemu_stderr="[  0.0] Linux version 7.3.4\n"), LOG)


@pytest.mark.parametrize(
    ("end", "text", "kind", "words"),
    [
        (replace(DONE, status=None, returncode=134), NO_ROOM, "panic", "signal 7"),
        (DONE, FAULT, "oops", "fault at addr"),
        (replace(DONE, status=None, silent="it was not done after 3600 seconds"), "", "hang", "not done after 3600 seconds"),
        (replace(DONE, status=None, returncode=1), "no memory\n", "qemu", "status 1 .*: no memory"),
    ],
)
def test_how_it_ends(end: machine.Story, text: str, kind: str, words: str) -> None:
    with pytest.raises(VmFailure, match=words) as caught:
        native.judge(native.Options(), replace(end, qemu_stderr=text), LOG)
    assert caught.value.kind == kind and caught.value.console == LOG
    assert "\n" not in str(caught.value) and "build/log/native.log" in str(caught.value)
