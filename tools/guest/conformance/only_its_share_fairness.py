# SPDX-License-Identifier: GPL-2.0
"""A DONTCACHE writer and a buffered writer at the same time: neither starves."""

import os
from pathlib import Path

from lib.devices import SPEED, slow_drive
from lib.dontcache import KIB, MIB, RWF_DONTCACHE, beside, file_system, for_a_while, knobs, opened
from lib.row import SHORT, Verdict, main, tried

SECONDS = 4 if SHORT else 20
PIECE = 64 * KIB
FILE = 32 * MIB
LEAST = 4
"""Nobody gets less than this part of what both get, and both no less than half of what the drive can do."""


def write_for_a_while(path: Path, flags: int, done: Path) -> None:
    """Writes a file again and again, and notes how many bytes it came to."""
    data, count = os.urandom(PIECE), 0
    with opened(path) as fd:
        for _ in for_a_while(SECONDS):
            os.pwritev(fd, [data], count * PIECE % FILE, flags)
            count += 1
    done.write_text(str(count * PIECE))


def fairness() -> Verdict:
    notes = {name: Path("/tmp") / f"{name}.bytes" for name in ("dontcache", "buffered")}
    # Limits that are reached at once: both writers have to wait for the drive.
    with slow_drive() as disk, file_system("xfs", disk.device) as root, knobs(
        dirty_bytes=8 * MIB, dirty_background_bytes=4 * MIB
    ):
        with beside(lambda: write_for_a_while(root / "dontcache", RWF_DONTCACHE, notes["dontcache"])):
            write_for_a_while(root / "buffered", 0, notes["buffered"])
    rates = {name: int(note.read_text()) / SECONDS / MIB for name, note in notes.items()}
    tried(sum(rates.values()), "writers that get on")
    both = sum(rates.values())
    kept = min(rates.values()) * LEAST >= both >= SPEED / MIB / 2
    return Verdict(kept, ", ".join(f"{name} {rate:.1f} MiB/s" for name, rate in rates.items()))


main(fairness)
