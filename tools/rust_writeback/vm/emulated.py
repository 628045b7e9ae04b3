# SPDX-License-Identifier: GPL-2.0
"""The virtual machine: boot the built kernel, run a command in it, and return the result. tools/vm runs it."""

import contextlib
import os
import shutil
import sys
import tempfile
import termios
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .. import arch, paths, steps
from ..arch import X86
from ..build.variants import of_arch
from ..errors import Failure, Parser, no_room, run_main
from . import console, images, machine, qemu
from .options import NvmeOptions, VmOptions, amount

__all__ = ["Boots", "NvmeOptions", "VmFailure", "VmOptions", "VmResult", "from_scratch", "run"]

STATUS = {"oops": 125, "panic": 126, "hang": 127, "qemu": 128}
TAINT_DIE, TAINT_WARN = 1 << 7, 1 << 9
KVM = Path("/dev/kvm")
TRIAL_SECONDS = 25.0
BOOT_SECONDS, BEAT_SECONDS = 120.0, 120.0
ICOUNT_FACTOR = 5

TRIES = 3
"""How often what QEMU itself dies in is tried before it counts as a failure."""


class VmFailure(Failure):
    """The machine, not the command, went wrong. Last words are those of a QEMU that died, nobody else's."""

    def __init__(self, kind: str, message: str, log: Path, last_words: str = "") -> None:
        place = os.path.relpath(log, paths.PROJECT)
        super().__init__(f"{message}; the console is in {place}", STATUS[kind])
        self.kind = kind
        self.console = log
        self.last_words = last_words

    @property
    def qemu_died(self) -> bool:
        """Was it QEMU itself, of an assertion, a signal or a timer that it lost, while all was well in the guest?"""
        return bool(self.last_words)


@dataclass
class Boots:
    """In how many boots QEMU itself died. Only such a one is tried again."""

    deaths: int = 0
    in_a_row: int = 0
    """Deaths since something has come to its end."""

    def over(self, failure: VmFailure) -> None:
        """Count a death. What was not QEMU's own death is raised, and so is one too many; a line tells of the others."""
        if not failure.qemu_died:
            raise failure
        self.deaths += 1
        self.in_a_row += 1
        if self.in_a_row == TRIES:
            message = f"QEMU died {TRIES} times in a row: {failure.last_words}"
            raise VmFailure(failure.kind, message, failure.console, failure.last_words) from failure
        print(f"QEMU died ({failure.last_words}), {self.in_a_row} of {TRIES} times", file=sys.stderr, flush=True)


def from_scratch(_failure: VmFailure) -> None:
    """What to do before another try, for a caller who kept nothing of the one before."""


@dataclass(frozen=True)
class VmResult:
    """What a command gave back, and what proves where it ran."""

    status: int
    stdout: bytes
    stderr: bytes
    console: Path
    accel: str
    qemu_command: list[str]
    qemu_version: str
    core: str
    kernel: str
    complaint: str = ""
    """The first line in which the kernel complained."""
    deaths: int = 0
    """How many QEMUs died before this one came through."""


def run(
    options: VmOptions,
    command: list[str],
    stdout: machine.Sink | None = None,
    stderr: machine.Sink | None = None,
    again: Callable[[VmFailure], None] | None = None,
) -> VmResult:
    """Boot, run the command (one word is given to a shell) and wait for its end.

    Output goes to the sinks, or into the result where there is none. Without a
    command there is a shell on the terminal. When QEMU itself has died, again is
    called, so that the sinks can forget what came, and all of it is tried anew;
    without it nothing is. What the guest died of never is.
    """
    options.check()
    if not options.kernel.exists():
        raise Failure(f"{options.kernel.relative_to(paths.PROJECT)} is missing; make it with: {options.made_by}")
    images.ensure(whole=options.icount, arch=options.arch)
    if options.flush_us:
        images.ensure_program(images.SLOW_FLUSH_SOURCE, images.SLOW_FLUSH, "-shared", "-fPIC", "-nostdlib")
    given = "icount" if options.icount else "tcg" if options.arch != X86 else options.accel
    accel = given or accelerator(options.kernel)
    boots = Boots()
    while True:
        try:
            return replace(_boot(options, accel, command, stdout, stderr), deaths=boots.deaths)
        except VmFailure as failure:
            if again is None:
                raise
            boots.over(failure)
            again(failure)


def accelerator(kernel: Path) -> str:
    """kvm or tcg: what works on this host, until it is booted again or has another QEMU.

    A /dev/kvm that can be opened proves nothing: QEMU may assert, or the guest may hang. So each kernel is
    booted under KVM once.
    """
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    verdict = paths.BUILD / f"accel-{kernel.name}"
    host = Path("/proc/sys/kernel/random/boot_id").read_text()

    def trial() -> None:
        options = VmOptions(mem="512M", nvme=None, check_core=False, kernel=kernel)
        works = False
        with contextlib.suppress(VmFailure):
            works = _boot(options, "kvm", ["true"], limit=TRIAL_SECONDS).status == 0
        steps.write_whole(verdict, "kvm" if works else "tcg")

    with steps.only_one("accel"):
        steps.step(verdict.name, steps.digest(host, qemu.version(), kernel), [verdict], trial)
        return verdict.read_text()


def _boot(
    options: VmOptions,
    chosen: str,
    command: list[str],
    stdout: machine.Sink | None = None,
    stderr: machine.Sink | None = None,
    limit: float | None = None,
) -> VmResult:
    factor = ICOUNT_FACTOR if options.icount else 1
    log = console.new_log("vm")
    with contextlib.ExitStack() as stack:
        limits = limit or BOOT_SECONDS * factor, limit or BEAT_SECONDS * factor
        qemus = stack.enter_context(machine.Guest(stdout, stderr, *limits))
        terminal = not command
        environment = qemu.environment(options)
        if terminal:
            size = shutil.get_terminal_size()
            environment |= {"LINES": str(size.lines), "COLUMNS": str(size.columns), "TERM": os.environ.get("TERM", "linux")}
            if sys.stdin.isatty():
                # QEMU makes the terminal raw; make it as it was, even if QEMU was killed.
                stack.callback(termios.tcsetattr, sys.stdin, termios.TCSADRAIN, termios.tcgetattr(sys.stdin))
        initramfs = images.initramfs(command, environment, options.icount, options.programs, options.arch)
        stack.enter_context(initramfs)
        inherited = [initramfs.fileno()]
        drive = None
        if options.nvme:
            # The test drive: a file without a name, so that nothing is left to delete.
            file = stack.enter_context(tempfile.TemporaryFile(dir=paths.BUILD))
            file.truncate(amount(options.nvme.size))
            drive = file.fileno()
            inherited.append(drive)
        wires = qemu.Wires(initramfs.fileno(), qemus.lines, drive, log, terminal)
        arguments = qemu.command(options, chosen, wires)
        qemus.start(arguments, inherited, terminal)
        story = qemus.run()
    text = log.read_text(errors="replace")
    _judge(options, story, text, log)
    return result(qemus, text, log, chosen, arguments, qemu.version(options.arch))


def result(guest: machine.Guest, text: str, log: Path, accel: str, command: list[str], version: str) -> VmResult:
    """What a run that came through gave back."""
    story = guest.story
    assert story.status is not None
    complaint = console.warning(text) or ("it is tainted by a warning" if story.taint & TAINT_WARN else "")
    return VmResult(
        status=story.status,
        stdout=bytes(guest.kept["stdout"]),
        stderr=bytes(guest.kept["stderr"]),
        console=log,
        accel=accel,
        qemu_command=command,
        qemu_version=version,
        core=story.core,
        kernel=story.kernel,
        complaint=complaint,
    )


def judge_guest(story: machine.Story, text: str, log: Path, core: str) -> None:
    """Raise if the guest went wrong, in whatever machine: its console has this text."""
    if story.refused:
        has = "has no writeback core" if story.core == "none" else f"runs the {story.core} core"
        raise Failure(f"the kernel {has}, not the {core} core that was asked for; build it again")
    if story.silent and machine.PANICKED not in story.events:
        raise VmFailure("hang", f"the guest hung: {story.silent}", log)
    if found := console.classify(text):
        verb = {"oops": "oopsed", "panic": "panicked", "hang": "hung"}[found[0]]
        raise VmFailure(found[0], f"the guest {verb}: {found[1]}", log)
    if story.taint & TAINT_DIE:
        raise VmFailure("oops", "the guest oopsed: its kernel is tainted by a death", log)


def _judge(options: VmOptions, story: machine.Story, text: str, log: Path) -> None:
    """Raise unless the run came through: silence about the end is never a success."""
    if machine.NO_ROOM in story.events:
        raise Failure(no_room(paths.BUILD.relative_to(paths.PROJECT)))
    complaint = console.warning(text)
    try:
        judge_guest(story, text, log, options.core)
    except VmFailure as failure:
        deaf = console.deaf_cpu(text)
        if failure.kind == "hang" and not story.silent and deaf and not complaint:
            words = f"CPU {deaf} is halted and gets no interrupt of its timer"
            raise VmFailure("qemu", f"QEMU died: {words}", log, words) from failure
        raise
    panicked = machine.PANICKED in story.events
    if story.returncode is not None and story.returncode < 0 and not panicked:
        # Then some of the output is missing, even if the status came. A complaint of the kernel is not passed over.
        words = qemu.last_words(story.qemu_stderr, story.returncode)
        if complaint:
            raise VmFailure("qemu", f"QEMU died: {words}, after the kernel had complained: {complaint}", log)
        raise VmFailure("qemu", f"QEMU died: {words}", log, words)
    if story.status is not None:
        return
    if panicked:
        raise VmFailure("panic", "the guest panicked without a word", log)
    if story.returncode:
        raise VmFailure("qemu", f"QEMU failed: {qemu.last_words(story.qemu_stderr, story.returncode)}", log)
    raise VmFailure("qemu", "the guest shut down before it reported the command's status", log)


def _parse(arguments: list[str]) -> tuple[VmOptions, list[str]]:
    parser = Parser(prog="tools/vm", allow_abbrev=False, description="Boot the built kernel and run CMD in it as root.")
    parser.add_argument("--core", default="rust", help="which core does the work: rust (the default) or c")
    parser.add_argument("--smp", type=int, default=2, help="how many CPUs")
    parser.add_argument("--mem", default="2G", help="how much memory")
    parser.add_argument("--icount", action="store_true", help="count time in instructions; a run repeats exactly")
    parser.add_argument("--nvme", help="the test drive, $NVME in the guest (with --icount only if this is given)")
    parser.add_argument("--share", help="a folder that the guest sees as /share")
    parser.add_argument("--append", default="", help="more kernel parameters")
    parser.add_argument("--arch", help=f"an emulated machine of this architecture: {', '.join(arch.ARCHES)}")
    parser.add_argument("--pages", help="the size of its pages, where that may be chosen")
    command: list[str] = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, command = arguments[:cut], arguments[cut + 1 :]
        if not command:
            raise Failure("no command after --; give one, or omit -- to get a shell", 2)
    known, rest = parser.parse_known_args(arguments)
    if rest and rest[0].startswith("-"):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        raise Failure(f"{' '.join(rest)}: a command comes after --, as in: tools/vm -- uname -a", 2)
    # A drive answers when the host likes, after which no run under icount is like another.
    drive = None if known.icount and known.nvme is None else NvmeOptions.parse(known.nvme or "")
    variant = of_arch(*arch.chosen(known.arch, known.pages))
    options = VmOptions(
        arch=variant.arch,
        kernel=variant.image,
        made_by=f"make kernel ARCH={variant.arch.name} PAGES={variant.pages}" if variant.pages else "make kernel",
        core=known.core,
        smp=known.smp,
        mem=known.mem,
        icount=known.icount,
        nvme=drive,
        share=paths.SHARE if known.share is not None else None,
        append=known.append,
    )
    return options, command


def main(arguments: list[str]) -> int:
    """Run tools/vm's command line; the status is the command's, or says what failed."""
    machine.polite()
    options, command = _parse(arguments)
    try:
        result = run(options, command, lambda data: machine.write_all(1, data), lambda data: machine.write_all(2, data))
    except VmFailure as failure:
        print(console.tail(failure.console.read_text(errors="replace")), file=sys.stderr)
        raise
    except BrokenPipeError:
        return 141
    if result.complaint:
        place = os.path.relpath(result.console, paths.PROJECT)
        print(f"warning: the kernel complained: {result.complaint}; see {place}", file=sys.stderr)
    return result.status


if __name__ == "__main__":
    sys.exit(run_main(lambda: main(sys.argv[1:])))
