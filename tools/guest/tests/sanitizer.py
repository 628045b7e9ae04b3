#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the kernel's sanitizer found, and whether it was at work to the end. Runs after all others.

What it has put on the console is for the host to see.
"""

import re
import time
from pathlib import Path

from lib import ktap
from lib.dontcache import sanitizer

KMEMLEAK = Path("/sys/kernel/debug/kmemleak")
KCSAN = Path("/sys/kernel/debug/kcsan")


def figure(path: Path, name: str) -> int:
    """The number that the file has under this name."""
    found = re.search(rf"^ *{name}: *(\d+)$", path.read_text(), re.M)
    assert found, f"{path} has no {name}"
    return int(found[1])


def lockdep() -> None:
    """It switches itself off at its first report, and when it runs out of room."""
    assert figure(Path("/proc/lockdep_stats"), "debug_locks") == 1, "lockdep has switched itself off"


def kmemleak() -> None:
    """Nothing of what was allocated is lost. What is younger than five seconds is not looked at."""
    time.sleep(6)
    KMEMLEAK.write_text("scan")  # refused once it has switched itself off
    leaks = KMEMLEAK.read_text()
    for line in leaks.splitlines()[:100]:
        print(f"# {line}")
    assert not leaks, f"{leaks.count('unreferenced object')} objects are lost"


def kcsan() -> None:
    """It watches, and has watched."""
    assert figure(KCSAN, "enabled") == 1, "KCSAN is off"
    assert figure(KCSAN, "setup_watchpoints") > 0, "KCSAN has watched nothing"


CASES = {"kcsan": kcsan, "kmemleak": kmemleak, "lockdep": lockdep, "rt": lockdep}

ktap.main("sanitizer", [(sanitizer(), CASES[sanitizer()])])
