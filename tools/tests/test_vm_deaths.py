# SPDX-License-Identifier: GPL-2.0
"""What QEMU itself dies of is tried again, three times in all; what the guest dies of never is."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest
from rust_writeback import errors, paths
from rust_writeback.check import power_cuts
from rust_writeback.vm import emulated, images, in_turn, machine, native
from rust_writeback.vm.emulated import VmFailure
from rust_writeback.vm.options import VmOptions
from rust_writeback.vm.torn_drive import Drive, SECTOR

from fake_guests import dies, plan, says, section
from test_vm_console import DEAF

LOG = paths.LOG / "vm.log"
DONE = machine.Story(kernel="7.3.4", core="rust", status=0)
BROKEN_OFF = replace(DONE, status=None)
ABORTED = replace(
    BROKEN_OFF, returncode=-signal.SIGABRT, qemu_stderr="qemu-system-x86_64: physmem.c:700: Assertion `index < nb' failed.\n"
)
WARNING = "[    1.0] WARNING: mm/x.c:7 at f+0x1\n"
PANIC = "[    1.0] Kernel panic - not syncing: it is over\n"


@pytest.mark.parametrize(
    ("story", "console", "kind", "words", "repeated"),
    [
        (ABORTED, "", "qemu", "QEMU died: physmem.c:700: Assertion", True),
        # Some of the output is missing though the status came.
        (replace(DONE, returncode=-signal.SIGSEGV), "", "qemu", "Segmentation fault", True),
        (BROKEN_OFF, DEAF, "qemu", "CPU 1 is halted and gets no interrupt", True),
        # A complaint of the kernel is not passed over.
        (ABORTED, WARNING, "qemu", "after the kernel had complained", False),
        (BROKEN_OFF, WARNING + DEAF, "hang", "Hard LOCKUP", False),
        (ABORTED, PANIC, "panic", "it is over", False),
        (replace(ABORTED, events=[machine.PANICKED]), "", "panic", "without a word", False),
        (replace(BROKEN_OFF, silent="it was silent for 120 seconds"), "", "hang", "silent for 120 seconds", False),
        (replace(DONE, taint=emulated.TAINT_DIE), "", "oops", "tainted", False),
        (replace(BROKEN_OFF, returncode=1, qemu_stderr="qemu: 'nvme' is no device\n"), "", "qemu", "'nvme' is no device", False),
        (BROKEN_OFF, "", "qemu", "shut down before it reported", False),
    ],
)
def test_how_it_ends(story: machine.Story, console: str, kind: str, words: str, repeated: bool) -> None:
    with pytest.raises(VmFailure, match=words) as caught:
        emulated._judge(VmOptions(), story, console, LOG)
    assert (caught.value.kind, caught.value.qemu_died) == (kind, repeated)
    assert "\n" not in str(caught.value) and "build/log/vm.log" in str(caught.value)


FAULT = "[  1.0] Kernel panic - not syncing: Kernel mode fault at addr 0x0, ip 0x60001000\n"
NO_ROOM = "[  1.0] Bus error - the host /dev/shm or /tmp mount\n[  1.0] Kernel panic - not syncing: Kernel mode signal 7\n"


@pytest.mark.parametrize(
    ("story", "text", "kind", "words"),
    [
        (replace(BROKEN_OFF, returncode=134), NO_ROOM, "panic", "signal 7"),
        (DONE, FAULT, "oops", "fault at addr"),
        (replace(BROKEN_OFF, silent="it was not done after 3600 seconds"), "", "hang", "not done after 3600 seconds"),
        (replace(BROKEN_OFF, returncode=1), "no memory\n", "qemu", "status 1 .*: no memory"),
    ],
)
def test_how_the_native_machine_ends(story: machine.Story, text: str, kind: str, words: str) -> None:
    with pytest.raises(VmFailure, match=words) as caught:
        native.judge(VmOptions(), replace(story, qemu_stderr=text), LOG)
    assert caught.value.kind == kind and caught.value.console == LOG and "\n" not in str(caught.value)


def test_a_run_that_came_through() -> None:
    emulated._judge(VmOptions(), replace(DONE, status=3), WARNING, LOG)
    native.judge(VmOptions(), replace(DONE, status=3, qemu_stderr="[  0.0] Linux version 7.3.4\n"), LOG)


def test_a_full_disk_of_the_host_is_no_hang() -> None:
    """QEMU stops the guest, which would be silent from then on, and says why."""
    with pytest.raises(errors.Failure, match="^no room left on the disk of build; free some space") as caught:
        emulated._judge(VmOptions(), replace(BROKEN_OFF, silent="silent", events=[machine.NO_ROOM]), "", LOG)
    assert not isinstance(caught.value, VmFailure)


@pytest.mark.parametrize(("core", "words"), [("c", "runs the c core, not the rust"), ("none", "has no writeback core")])
def test_the_wrong_core_is_no_result(core: str, words: str) -> None:
    with pytest.raises(errors.Failure, match=words):
        emulated._judge(VmOptions(), replace(BROKEN_OFF, core=core, refused=True), "", LOG)


@pytest.mark.parametrize(
    ("ends", "repeats", "boots", "status"),
    [
        (["qemu", "qemu", ""], True, 3, 7),
        (["qemu", "qemu", "qemu", ""], True, 3, 128),
        (["qemu", "oops", ""], True, 2, 125),
        # Without somebody who forgets what came, nothing is repeated.
        (["qemu", ""], False, 1, 128),
    ],
)
def test_only_a_death_of_qemu_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, ends: list[str], repeats: bool, boots: int, status: int
) -> None:
    left, forgotten = [dies(kind=end) if end else says(status=7) for end in ends], list[VmFailure]()
    monkeypatch.setattr(emulated, "_boot", lambda *_: left.pop(0)(lambda _: None))
    monkeypatch.setattr(images, "ensure", lambda whole, arch: None)
    options = VmOptions(nvme=None, kernel=Path(__file__), accel="tcg")
    again = forgotten.append if repeats else None
    assert errors.run_main(lambda: emulated.run(options, ["true"], again=again).status) == status
    assert (len(ends) - len(left), len(forgotten)) == (boots, boots - 1)


def printed(scripts: str) -> bytes:
    """What the driver says of scripts with these names; one in capitals was interrupted."""
    return b"".join(section(one, "") if one.islower() else f"\0begin {one.lower()}\n".encode() for one in scripts)


BLAMED = ("b", in_turn.NO_STATUS, in_turn.EARLY)


@pytest.mark.parametrize(
    ("planned", "yielded", "asked", "blamed"),
    [
        # Only the script that was interrupted runs again.
        ([("aB", "qemu"), ("bc", "")], 1, ["abc", "bc"], []),
        # Deaths are in a row while no script ends.
        ([("A", "qemu"), ("", "qemu"), ("aB", "qemu"), ("B", "qemu"), ("bc", "")], 1, ["abc"] * 3 + ["bc"] * 2, []),
        # What dies three times is blamed, and the others go on.
        ([("aB", "qemu"), ("B", "qemu"), ("B", "qemu"), ("C", "qemu"), ("c", "")], 1, ["abc", "bc", "bc", "c", "c"], [BLAMED]),
        # A death after the last script changes nothing.
        ([("abc", "qemu")], 0, ["abc"], []),
        # The scripts after one that kills the guest run in another.
        ([("aB", "oops"), ("c", "")], 1, ["abc", "c"], [("b", in_turn.NO_STATUS, "oops")]),
        # A guest that dies at boot did not run the script that it was to begin with.
        ([("aB", "qemu"), ("", "oops"), ("c", "")], 1, ["abc", "bc", "c"], [BLAMED]),
    ],
)  # fmt: skip
def test_scripts_in_turn(
    monkeypatch: pytest.MonkeyPatch, planned: list[tuple[str, str]], yielded: int, asked: list[str], blamed: list[object]
) -> None:
    commands = plan(monkeypatch, *(dies(printed(said), kind=end) if end else says(printed(said)) for said, end in planned))
    ended: list[in_turn.Ended] = []
    assert len(list(in_turn.run(VmOptions(), "/share", "./$0", 60, list("abc"), ended.append))) == yielded
    assert ["".join(command[7:]) for command in commands] == asked
    b = blamed or [("b", 0, "")]
    assert [(one.script, one.status, one.kind) for one in ended] == [("a", 0, ""), *b, ("c", 0, "")]


@pytest.mark.parametrize(
    ("kind", "boots", "words"), [("qemu", 3, "^QEMU died 3 times in a row"), ("oops", 1, "^the guest oopsed")]
)
def test_a_kernel_that_does_not_boot_is_a_failure(monkeypatch: pytest.MonkeyPatch, kind: str, boots: int, words: str) -> None:
    commands = plan(monkeypatch, *[dies(kind=kind)] * 3)
    with pytest.raises(VmFailure, match=words):
        list(in_turn.run(VmOptions(), "/share", "./$0", 60, ["a", "b"], lambda _: pytest.fail("a script ended")))
    assert len(commands) == boots


@pytest.mark.parametrize("begun", ["", "checked", "acknowledged"])
def test_only_a_death_before_the_load_is_no_cut(tmp_path: Path, begun: str) -> None:
    death = VmFailure("qemu", "QEMU died: it aborted", LOG, "it aborted")
    watch = power_cuts.Watch(Drive(64 * SECTOR, tmp_path), tmp_path / "acknowledged", 1.0)
    watch.take(b"checked 4096\n" if begun == "checked" else b"mkfs said something\nand sa")
    if begun == "acknowledged":
        watch.acknowledged.mkdir()
    if begun:
        with pytest.raises(emulated.VmFailure, match="^QEMU died: it aborted"):
            watch.again(death)
    else:
        watch.again(death)
        watch.take(b"a word\n")
        assert watch.text == b"a word\n"
