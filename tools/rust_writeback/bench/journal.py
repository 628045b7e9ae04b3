# SPDX-License-Identifier: GPL-2.0
"""Keeps finished boots, so that an interrupted benchmark continues where it stopped.

The file of a boot holds a line about the boot, and then the output of the guest, word for word. All files
belong to one fingerprint: of the kernel, the machine, the loads and the driver. When any of these changes, the
benchmark starts again.
"""

import contextlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from .. import steps
from . import boots
from .catalogue import Load


def fingerprint(machine: boots.Machine, loads: Sequence[Load], compared: Sequence[str], pairs: int) -> str:
    """What two boots must have in common to be of one benchmark."""
    about = repr((machine, list(compared), pairs))
    return steps.digest(about, *map(repr, loads), machine.image, *driver())


def driver() -> list[Path]:
    """The programs that run beside the load, or are it."""
    programs = (path for name in ("bench", "lib") for path in sorted((boots.DRIVER / name).glob("*.py")))
    return [*programs, boots.DRIVER / "load.c"]


class Journal:
    """The finished boots of one fingerprint."""

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder
        with contextlib.suppress(FileNotFoundError):
            if (folder / "fingerprint").read_text() == key:
                return
        shutil.rmtree(folder, ignore_errors=True)
        steps.write_whole(folder / "fingerprint", key)

    def close(self) -> None:
        """All is told: the next benchmark measures anew, whatever it is."""
        (self.folder / "fingerprint").unlink(missing_ok=True)

    def _path(self, boot: boots.Boot) -> Path:
        return self.folder / f"{boot.name}.jsonl"

    def has(self, boot: boots.Boot) -> bool:
        """Was this boot finished, with these very steps? If so, it has its output and facts now."""
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
            first, _, rest = self._path(boot).read_bytes().partition(b"\n")
            line = json.loads(first)
            if line["keys"] == [list(step.key) for step in boot.steps]:
                boot.output, boot.facts = rest, line["facts"]
                return True
        return False

    def save(self, boot: boots.Boot) -> None:
        """Keep it; a boot that did not come to its end is kept to be looked at only."""
        line = {"kind": "boot", "keys": [step.key for step in boot.steps], "facts": boot.facts}
        path = self._path(boot)
        if not boot.facts:
            path = path.with_suffix(".partial")
        steps.write_whole(path, json.dumps(line).encode() + b"\n" + boot.output)
