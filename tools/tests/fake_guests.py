# SPDX-License-Identifier: GPL-2.0
"""Guests without a kernel: they print what the driver of scripts prints, and end as they are told."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rust_writeback.vm import emulated

Boot = Callable[[Callable[[bytes], None]], emulated.VmResult]


def section(name: str, text: str, status: int = 0, taint: int = 0) -> bytes:
    """A script from its begin to its end."""
    return f"\0begin {name}\n{text}\0end {status} {taint}\n".encode()


def says(*parts: bytes, status: int = 0, complaint: str = "", console: Path = Path("/log")) -> Boot:
    """A guest that prints these one after the other, and ends like this."""

    def boot(stdout: Callable[[bytes], None]) -> emulated.VmResult:
        for part in parts:
            stdout(part)
        return emulated.VmResult(status, b"", b"", console, "tcg", [], "", "rust", "", complaint=complaint)

    return boot


def dies(*parts: bytes, kind: str = "oops", said: str = "the guest oopsed") -> Boot:
    """A guest that oopses after that, or what else dies in it."""

    def boot(stdout: Callable[[bytes], None]) -> emulated.VmResult:
        says(*parts)(stdout)
        raise emulated.VmFailure(kind, said, Path("/src/build/log/x"), "it aborted" if kind == "qemu" else "")

    return boot


def plan(monkeypatch: pytest.MonkeyPatch, *boots: Boot) -> list[list[str]]:
    """Let these be the next boots; the commands that they get."""
    left, commands = list(boots), []

    def run(_options: emulated.VmOptions, command: list[str], stdout: Callable[[bytes], None]) -> emulated.VmResult:
        commands.append(command)
        return left.pop(0)(stdout)

    monkeypatch.setattr(emulated, "run", run)
    return commands
