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


def fingerprint(machine: boots.Machine, loads: Sequence[Load], pairs: int) -> str:
    """What two boots must have in common to be of one benchmark, with the programs that run beside the load, or are it."""
    programs = [path for name in ("bench", "lib") for path in sorted((boots.DRIVER / name).glob("*.py"))]
    return steps.digest(repr((machine, pairs)), *map(repr, loads), machine.image, *programs, boots.DRIVER / "load.c")


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

    def has(self, boot: boots.Boot) -> bool:
        """Was this boot finished? If so, it has its output and facts now."""
        with contextlib.suppress(FileNotFoundError):
            facts, _, boot.output = (self.folder / f"{boot.name}.jsonl").read_bytes().partition(b"\n")
            boot.facts = json.loads(facts)
        return bool(boot.facts)

    def save(self, boot: boots.Boot) -> None:
        """Keep it."""
        steps.write_whole(self.folder / f"{boot.name}.jsonl", json.dumps(boot.facts).encode() + b"\n" + boot.output)
