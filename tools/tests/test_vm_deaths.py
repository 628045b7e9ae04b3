# SPDX-License-Identifier: GPL-2.0
"""What QEMU itself dies of is tried again, three times in all; what the guest dies of never is."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rust_writeback import errors, paths
from rust_writeback.arch import X86
from rust_writeback.check import power_cuts
from rust_writeback.vm import emulated, images, in_turn, machine, qemu
from rust_writeback.vm.torn_drive import Drive, SECTOR
from rust_writeback.vm.options import VmOptions
from test_vm_console import DEAF

FAKE = """#!{python}
import os, re, signal, sys
from pathlib import Path

plans = Path({plans!r})
plan, *rest = plans.read_text().splitlines()
plans.write_text("".join(line + "\\n" for line in rest))
line = " ".join(sys.argv)
ports = dict(re.findall(r"socket,id=(\\w+),fd=(\\d+)", line))


def say(port, text):
    os.write(int(ports[port]), text.encode())


def log(text):
    Path(re.search(r"id=console,path=(\\S+)", line)[1]).write_text(text)


def words(text):
    sys.stderr.write(text)
    sys.stderr.flush()


def die(number=signal.SIGABRT):
    os.kill(os.getpid(), number)


exec(plan)
"""
"""A QEMU that does what is next in a file."""

HELLO = r'say("control", "hello 7.3\ncore rust\n"); '
HALF = HELLO + 'say("stdout", "half"); '
ASSERTION = "physmem.c:700: iotlb_to_section: Assertion `index < nb' failed."
WORDS = rf'words("qemu-system-x86_64: {ASSERTION}\n"); '
DIES = HALF + WORDS + "die()"
LIVES = HELLO + r'say("stdout", "whole"); say("control", "exit 7 0 5 0\n"); signal.pause()'

Plan = Callable[..., Path]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plan:
    """Put a QEMU in place that does these things, a line of them in each of its boots."""
    fake, plans, anything = (tmp_path / name for name in ("qemu", "plans", "anything"))
    fake.write_text(FAKE.format(python=sys.executable, plans=str(plans)))
    fake.chmod(0o755)
    anything.write_bytes(b"")
    monkeypatch.setitem(qemu.BOARDS, X86, replace(qemu.BOARDS[X86], program=str(fake)))
    monkeypatch.setattr(qemu, "version", lambda arch=X86: "1")
    monkeypatch.setattr(images, "ensure", lambda whole, arch: None)
    monkeypatch.setattr(images, "init", lambda arch: anything)
    monkeypatch.setattr(emulated, "accelerator", lambda kernel: "tcg")
    monkeypatch.setattr(machine, "polite", lambda: None)
    monkeypatch.setattr(paths, "LOG", tmp_path / "log")
    monkeypatch.setattr(paths, "BZIMAGE", anything)

    def planned(*lines: str) -> Path:
        plans.write_text("".join(f"{line}\n" for line in lines))
        return plans

    return planned


OPTIONS = VmOptions(nvme=None)
accelerator = emulated.accelerator


def test_a_qemu_that_dies_is_tried_again(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a signal when some of the output is missing though the status came, or of a timer that it loses."""
    plan(HALF + r'say("control", "exit 0 0 5 0\n"); die(signal.SIGSEGV)', HALF + f"log({DEAF!r}); sys.exit(0)", LIVES)
    output = bytearray()

    def again(failure: emulated.VmFailure) -> None:
        assert output == b"half" and failure.qemu_died
        output.clear()

    result = emulated.run(OPTIONS, ["true"], stdout=output.extend, again=again)
    assert (result.status, result.deaths, output) == (7, 2, b"whole")
    first = "QEMU died (no message, Segmentation fault); trying again, 2 of 3\n"
    second = "QEMU died (CPU 1 is halted and gets no interrupt of its timer); trying again, 3 of 3\n"
    assert capsys.readouterr().err == first + second


def test_the_third_death_in_a_row_is_a_line_and_a_status(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    plans = plan(DIES, DIES, DIES, LIVES)

    def main() -> int:
        return emulated.run(OPTIONS, ["true"], again=emulated.from_scratch).status

    assert errors.run_main(main) == 128
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith(f"error: QEMU died 3 times in a row: {ASSERTION}; the console is in ")
    assert plans.read_text() == f"{LIVES}\n"


def test_the_command_line_repeats_nothing(plan: Plan, capfd: pytest.CaptureFixture[str]) -> None:
    plans = plan(DIES, LIVES)
    assert errors.run_main(lambda: emulated.main(["--", "true"])) == 128
    out, err = capfd.readouterr()
    assert out == "half" and err.splitlines()[-1].startswith("error: QEMU died: physmem")
    assert plans.read_text() == f"{LIVES}\n"


PANIC = r'log("[    1.0] Kernel panic - not syncing: it is over\n"); '
EVENT = """say("monitor", '{"event": "GUEST_PANICKED"}'); """


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (HALF + PANIC + "die()", "panic"),
        (HALF + EVENT + "die()", "panic"),
        (HALF + r'log("[    1.0] kernel BUG at mm/x.c:1!\n"); die()', "oops"),
        (HALF + "signal.pause()", "hang"),
        (HALF + f"log({'WARNING: mm/x.c:7' + chr(10) + DEAF!r}); sys.exit(0)", "hang"),
        (HALF + "sys.exit(0)", "qemu"),
        (HELLO + r'say("control", f"exit 0 {1 << 7} 0 0\n"); signal.pause()', "oops"),
        (r"""words("qemu: 'nvme' is not a valid device model name\n"); sys.exit(1)""", "qemu"),
        (HALF + r'log("[    1.0] WARNING: mm/x.c:7 at f+0x1\n"); die()', "qemu"),
    ],
)
def test_nothing_else_is_repeated(plan: Plan, monkeypatch: pytest.MonkeyPatch, end: str, kind: str) -> None:
    """A panic, an oops, silence, a guest that goes off, a wrong option; and a complaint of the kernel is kept."""
    plans = plan(end, LIVES)
    monkeypatch.setattr(emulated, "BEAT_SECONDS", 0.5)
    with pytest.raises(emulated.VmFailure) as caught:
        emulated.run(OPTIONS, ["true"], again=lambda _: pytest.fail("it was to be repeated"))
    assert caught.value.kind == kind and not caught.value.qemu_died
    assert plans.read_text() == f"{LIVES}\n"


def test_a_full_disk_of_the_host_is_no_hang(plan: Plan) -> None:
    """QEMU stops the guest, which would be silent from then on, and says why."""
    event = json.dumps({"event": "BLOCK_IO_ERROR", "data": {"device": "nvme", "nospace": True}})
    plan(HALF + rf"say('monitor', '{event}\n'); signal.pause()")
    with pytest.raises(errors.Failure, match="^no room left on the disk of build; free some space") as caught:
        emulated.run(OPTIONS, ["true"], again=lambda _: pytest.fail("it was to be repeated"))
    assert not isinstance(caught.value, emulated.VmFailure)


class Guests:
    """Boots that are made up: what the driver prints in each, and whether QEMU, the guest or nothing dies then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *boots: tuple[str, str]) -> None:
        self.left = list(boots)
        self.asked: list[str] = []
        self.ended: list[tuple[str, int, str]] = []
        monkeypatch.setattr(emulated, "run", self._run)

    def _run(self, options: VmOptions, command: list[str], stdout: Callable[[bytes], None]) -> emulated.VmResult:
        self.asked.append("".join(command[7:]))
        printed, end = self.left.pop(0)
        for script in printed:
            stdout(f"\0begin {script.lower()}\n".encode())
            if script.islower():
                stdout(b"\0end 0 0\n")
        if end == "qemu":
            raise DEATH
        if end:
            raise emulated.VmFailure(end, "the guest died", Path("/log"))
        return emulated.VmResult(0, b"", b"", Path("/log"), "tcg", [], "", "rust", "")

    def run(self, scripts: str) -> int:
        """Run them, and note how each ended; how many boots were yielded?"""

        def ended(script: in_turn.Ended) -> None:
            self.ended.append((script.script, script.status, script.kind))

        return len(list(in_turn.run(VmOptions(), "/share", "./$0", 60, list(scripts), ended)))


DEATH = emulated.VmFailure("qemu", "QEMU died: it aborted", Path("/log"), "it aborted")
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
    guests = Guests(monkeypatch, *planned)
    assert guests.run("abc") == yielded
    assert guests.asked == asked
    b = blamed or [("b", 0, "")]
    assert guests.ended == [("a", 0, ""), *b, ("c", 0, "")]


def test_a_qemu_that_dies_three_times_before_any_script_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    guests = Guests(monkeypatch, *[("", "qemu")] * 3)
    with pytest.raises(emulated.VmFailure, match="^QEMU died 3 times in a row: it aborted; the console") as caught:
        guests.run("ab")
    assert caught.value.status == 128 and "\n" not in str(caught.value)
    assert not guests.ended


def test_a_kernel_that_does_not_boot_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(emulated.VmFailure, match="the guest died"):
        Guests(monkeypatch, ("", "oops")).run("ab")


@pytest.mark.parametrize("begun", ["", "checked", "acknowledged"])
def test_only_a_death_before_the_load_is_no_cut(tmp_path: Path, begun: str) -> None:
    with Drive(64 * SECTOR, tmp_path) as drive:
        watch = power_cuts.Watch(drive, tmp_path / "acknowledged", 1.0)
        watch.take(b"checked 4096\n" if begun == "checked" else b"mkfs said something\nand sa")
        if begun == "acknowledged":
            watch.acknowledged.mkdir()
        if begun:
            with pytest.raises(emulated.VmFailure, match="^QEMU died: it aborted"):
                watch.again(DEATH)
        else:
            watch.again(DEATH)
            watch.take(b"a word\n")
            assert watch.text == b"a word\n"
