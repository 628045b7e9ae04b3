# SPDX-License-Identifier: GPL-2.0
"""Runs scripts in the virtual machine in turn: in one boot, unless a script crashes the guest.

The scripts after a crash get a new guest. So do the scripts after one that had to be killed, because the guest is
left in the middle of it, and after one that reports that it has spoilt the guest. If QEMU itself dies, no script is
blamed: the script that was running begins again in a new guest.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..errors import Failure
from . import emulated

TIMED_OUT = (124, 137)
"""The status of timeout(1), by a signal that a script may heed and by one that it cannot."""

SPOILT = 99
"""The status of a script that leaves the guest in a state in which others cannot tell anything."""

NO_STATUS = -1
"""The status of a script whose guest has died."""

EARLY = "early"
"""The kind of death when the guest was well, but its driver or QEMU was not."""

DRIVER = (
    'cd "$1" || exit; seconds=$2; command=$3; shift 3; for script; do'
    r" printf '\000begin %s\n' $script;"
    ' echo "guest script: $script" >/dev/kmsg;'
    ' timeout -k 10 $seconds sh -c "$command" "$script"; status=$?; read -r taint </proc/sys/kernel/tainted;'
    r" printf '\000end %s %s\n' $status $taint;"
    f" case $status in {'|'.join(map(str, (*TIMED_OUT, SPOILT)))}) exit;; esac; done"
)
"""Runs the command on each script, whose name is $0 there. A NUL, which no script prints, marks where each
begins and ends; the console has a line where it begins."""


@dataclass(frozen=True)
class Ended:
    """A script that has ended, or whose guest has died: then there is a kind of death and a reason."""

    script: str
    output: str
    status: int
    seconds: float
    warned: bool = False
    """Did the kernel warn while the script ran?"""
    kind: str = ""
    reason: str = ""


@dataclass
class _Boot:
    """What the driver's output says, script by script."""

    ended: Callable[[Ended], None]
    done: list[str] = field(default_factory=list)
    running: str = ""
    taint: int = 0
    """What the kernel was tainted by when a script last ended."""
    _begin: float = 0.0
    _pending: bytearray = field(default_factory=bytearray)

    def take(self, data: bytes) -> None:
        """Consume output as it comes; tell of a script once it has ended."""
        self._pending += data
        while match := re.search(rb"\0(begin|end) (.*)\n", self._pending):
            mark, words = match[1].decode(), match[2].decode()
            output = self._pending[: match.start()].decode(errors="replace")
            del self._pending[: match.end()]
            if mark == "begin":
                self.running, self._begin = words, time.monotonic()
                continue
            status, taint = (int(number) for number in words.split())
            warned = bool(taint & ~self.taint & emulated.TAINT_WARN)
            self.taint = taint
            self._tell(Ended(self.running, output, status, self._seconds(), warned))

    def died(self, kind: str, reason: str) -> None:
        """The guest went away: blame the script that was running, or the last that did."""
        blamed = self.running or self.done[-1]
        output = self._pending.decode(errors="replace")
        self._tell(Ended(blamed, output, NO_STATUS, self._seconds(), kind=kind, reason=reason))

    def _seconds(self) -> float:
        return round(time.monotonic() - self._begin, 1)

    def _tell(self, ended: Ended) -> None:
        self.done.append(ended.script)
        self.running = ""
        self.ended(ended)


def complained_in(result: emulated.VmResult) -> str:
    """The script that was running when the kernel complained, as the console has it; nothing before the first."""
    before = result.console.read_text(errors="replace").partition(result.complaint)[0]
    begun = re.findall(r"guest script: (\S+)", before)
    return begun[-1] if begun else ""


def run(
    options: emulated.VmOptions,
    folder: str,
    command: str,
    seconds: int,
    scripts: Sequence[str],
    ended: Callable[[Ended], None],
) -> Iterator[emulated.VmResult]:
    """Run the command for each script in a folder of the guest; tell of each that ended; yield what each boot gave back.

    A boot has a complaint only if no script was blamed for a warning.
    Raises Failure when the first guest does not come so far as to run a script. Of a later one the script that it was
    to begin with was not run: an emulator with several threads makes a kernel die at boot once in hundreds of boots.
    """
    left, boots = list(scripts), emulated.Boots()
    while left:
        boot = _Boot(ended)
        words = ["sh", "-c", DRIVER, "driver", folder, str(seconds), command, *left]
        try:
            result = emulated.run(options, words, stdout=boot.take)
        except emulated.VmFailure as failure:
            _bury(boot, failure, boots, left, first=len(left) == len(scripts))
        else:
            boots.in_a_row = 0
            if boot.running:
                boot.died(EARLY, f"the driver ended early with status {result.status}; see {result.console}")
            elif not boot.done:
                raise Failure(f"the guest of the {options.core} core ran no script; see {result.console}")
            yield replace(result, complaint="" if boot.taint & emulated.TAINT_WARN else result.complaint)
        left = [script for script in left if script not in boot.done]


def _bury(boot: _Boot, failure: emulated.VmFailure, boots: emulated.Boots, left: Sequence[str], first: bool) -> None:
    """Count a boot that came to a bad end; blame a script unless QEMU has died and may be tried again."""
    if boot.done:
        boots.in_a_row = 0
    try:
        boots.over(failure)
    except emulated.VmFailure as final:
        early = final.qemu_died
        if not boot.running and not boot.done:
            if first:
                raise
            boot.running, early = left[0], True
        boot.died(EARLY if early else final.kind, str(final))
        boots.in_a_row = 0
