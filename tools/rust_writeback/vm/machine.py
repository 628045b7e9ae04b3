# SPDX-License-Identifier: GPL-2.0
"""One run of a machine, QEMU mostly: its process, the lines to PID 1 of the guest, and its end."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

Sink = Callable[[bytes], None]

PANICKED, NO_ROOM = "GUEST_PANICKED", "NO_ROOM"
EVENTS = {PANICKED: b'"event": "GUEST_PANICKED"', NO_ROOM: b'"nospace": true'}
"""What QEMU tells on its monitor: the second when the host has no room for what the guest writes to a drive."""

LAST_SECONDS = 10.0


@dataclass
class Story:
    """What the guest told, and what the host saw of it."""

    kernel: str = ""
    core: str = "none"
    refused: bool = False
    status: int | None = None
    taint: int = 0
    expected: dict[str, int] = field(default_factory=dict)
    silent: str = ""
    """For how long, when it was given up."""
    events: list[str] = field(default_factory=list)
    returncode: int | None = None
    qemu_stderr: str = ""

    def hear(self, line: str) -> None:
        """Take in one line from PID 1; tools/guest/init.c says what lines there are."""
        word, _, rest = line.partition(" ")
        if word == "hello":
            self.kernel = rest
        elif word == "core":
            self.core = rest
        elif word == "refused":
            self.refused = True
        elif word == "exit":
            status, taint, out, err = (int(number) for number in rest.split())
            self.status, self.taint = status, taint
            self.expected = {"stdout": out, "stderr": err}


class Guest:
    """A started QEMU, or what speaks to us like it. Leaving the context kills it, whatever happened.

    The output of the guest's command goes to the sinks, or is kept where there is none. What QEMU says on stderr
    goes to a file without a name unless there is another.
    """

    def __init__(
        self,
        stdout: Sink | None,
        stderr: Sink | None,
        boot_limit: float,
        beat_limit: float,
        whole_limit: float = math.inf,
        log: IO[bytes] | None = None,
    ) -> None:
        self.story = Story()
        self.boot_limit = boot_limit
        self.beat_limit = beat_limit
        self.whole_limit = whole_limit
        self.kept = {"stdout": bytearray(), "stderr": bytearray()}
        self._sinks = {"stdout": stdout or self.kept["stdout"].extend, "stderr": stderr or self.kept["stderr"].extend}
        self._got = {"stdout": 0, "stderr": 0}
        self._line = self._monitor = b""
        self._selector = selectors.DefaultSelector()
        self._ours: dict[str, socket.socket] = {}
        self._theirs: dict[str, socket.socket] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] = log or tempfile.TemporaryFile()
        for name in ("control", "stdout", "stderr", "monitor"):
            self._ours[name], self._theirs[name] = socket.socketpair()
            self._selector.register(self._ours[name], selectors.EVENT_READ, name)
        self.lines = {name: end.fileno() for name, end in self._theirs.items()}
        """QEMU's ends of the connections, as file descriptors."""

    def start(self, command: list[str], descriptors: list[int], terminal: bool) -> None:
        """Start QEMU so that it cannot outlive us, even if we are killed."""
        self._started = self._heard = time.monotonic()
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *command],
            stdin=None if terminal else subprocess.DEVNULL,
            stdout=None if terminal else subprocess.DEVNULL,
            stderr=self._stderr,
            pass_fds=[*descriptors, *self.lines.values()],
            process_group=None if terminal else 0,
        )
        for end in self._theirs.values():
            end.close()
        self._ask("qmp_capabilities")

    def __enter__(self) -> Guest:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process and self._process.poll() is None:
            self._process.kill()
        if self._process:
            self._process.wait()
            # What was started may have had children, which are being killed: wait until nobody holds the other end.
            self._ours["control"].settimeout(LAST_SECONDS)
            with contextlib.suppress(OSError):
                while self._ours["control"].recv(1 << 18):
                    pass
        for end in (*self._ours.values(), *self._theirs.values()):
            end.close()
        self._selector.close()
        self._stderr.close()

    def _ask(self, what: str) -> None:
        with contextlib.suppress(OSError):
            self._ours["monitor"].sendall(json.dumps({"execute": what}).encode() + b"\n")

    def _complete(self) -> bool:
        """Has the command ended and has all of its output arrived?"""
        return self.story.refused or (self.story.status is not None and self._got == self.story.expected)

    def run(self) -> Story:
        """Serve the connections until the guest is done, dead or silent."""
        assert self._process
        story = self.story
        while not self._complete() and self._selector.get_map() and NO_ROOM not in story.events:
            limit = self.beat_limit if story.kernel else self.boot_limit
            now = time.monotonic()
            whole = self._started + self.whole_limit - now
            left = min(self._heard + limit - now, whole)
            ready = self._selector.select(max(left, 0))
            if whole <= 0 or (not ready and left <= 0):
                late = f"it was not done after {self.whole_limit:.0f} seconds"
                self._give_up(late if whole <= 0 else f"PID 1 was silent for {limit:.0f} seconds")
                break
            for key, _ in ready:
                self._serve(key.data)
            if story.status is None and PANICKED in story.events:
                # It restarts on its own, which ends QEMU; if not, soon is late enough.
                self.beat_limit = self.boot_limit = min(self.beat_limit, 10)
        if not self._complete() and not story.silent and NO_ROOM not in story.events:
            story.returncode = self._process.wait()
        self._stderr.seek(0)
        story.qemu_stderr = self._stderr.read().decode(errors="replace")
        return story

    def _serve(self, name: str) -> None:
        data = b""
        with contextlib.suppress(ConnectionResetError):
            data = self._ours[name].recv(1 << 18)
        if not data:
            self._selector.unregister(self._ours[name])
        elif name == "control":
            self._heard = time.monotonic()
            *lines, self._line = (self._line + data).split(b"\n")
            for line in lines:
                self.story.hear(line.decode(errors="replace"))
        elif name == "monitor":
            self._monitor += data
            self.story.events += [event for event, mark in EVENTS.items() if mark in self._monitor]
            self._monitor = self._monitor.rpartition(b"\n")[2]
        else:
            self._got[name] += len(data)
            before = time.monotonic()
            self._sinks[name](data)
            # While whoever reads us was slow, the guest could not be heard.
            self._heard += time.monotonic() - before

    def _give_up(self, silent: str) -> None:
        """A silent guest: have its CPUs tell where they are, for the log, and stop."""
        assert self._process
        self.story.silent = silent
        if PANICKED in self.story.events:
            return
        self._ask("inject-nmi")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)


def polite() -> None:
    """Let TERM end a run in the way that Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)


def write_all(descriptor: int, data: bytes) -> None:
    """Hand everything on to a file descriptor."""
    while data:
        data = data[os.write(descriptor, data) :]
