# SPDX-License-Identifier: GPL-2.0
"""Run another program with its output in a log file."""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .errors import Failure, no_room

ERROR_LINE = re.compile(r"\berror(\[E\d+\])?:|\*\*\* |undefined symbol|: not found|No such file", re.IGNORECASE)
"""Where a log begins to say why something failed; otherwise its last lines do."""
MOST = 20
"""Lines that are shown of it."""


def logged(
    command: Sequence[str],
    log: Path,
    env: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
    cwd: Path | None = None,
) -> int:
    """Run a command with all of its output in a log; returns its status.

    on_line sees every line as it comes.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w", buffering=1, errors="replace") as file,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=env,
            cwd=cwd,
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            if on_line is not None:
                on_line(line)
    return process.returncode


def must(
    command: Sequence[str],
    log: Path,
    what: str,
    env: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run a command that has to succeed; otherwise show why it did not."""
    status = logged(command, log, env, on_line, cwd)
    if status == 0:
        return
    text = log.read_text(errors="replace")
    if "No space left on device" in text:
        raise Failure(no_room(log.parent))
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if ERROR_LINE.search(line)), -MOST)
    for line in lines[first:][:MOST]:
        print(f"  {line}", flush=True)
    raise Failure(f"{what} failed with status {status}; the lines above are from {log.relative_to('/src')}")
