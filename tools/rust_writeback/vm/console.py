# SPDX-License-Identifier: GPL-2.0
"""The guest's console: where it is kept, and how a run ended according to it."""

import os
import re
import tempfile
import time
from pathlib import Path

from .. import paths

LOGS_KEPT = 200

STAMP = r"^(?:\[[^\]]*\]\s*)?"
HANG = re.compile(r"softlockup|soft lockup|hung_task|hard lockup|RCU Stall|unknown NMI|NMI: Not continuing", re.IGNORECASE)
OOPS = re.compile(
    STAMP + r"((?:Oops: |Oops\b.*\[#\d+\]|BUG: (?:unable to|kernel NULL|KASAN|Bad |failure at )|kernel BUG at"
    r"|general protection fault|Internal error|invalid opcode|stack segment|double fault|divide error).*)",
    re.MULTILINE,
)
PANIC = re.compile(STAMP + r"(Kernel panic - not syncing: ?(.*))", re.MULTILINE)
WARNING = re.compile(
    STAMP + r"((?:WARNING: |(?:\[ )?BUG: |BUG \S+ \(|UBSAN: |INFO: (?:task|rcu|possible|inconsistent|trying)|rcu: INFO"
    r"|watchdog: BUG|INFO: lockdep is turned off|kmemleak: (?:\d+ new suspected|.*detector disabled)"
    r"|.*\bpages were counted as dirty dropbehind, but none is).*)",
    re.MULTILINE,
)

DEATHS = (
    "Fatal exception",
    # User-mode Linux calls its oopses so, and has no others.
    "Kernel mode fault",
    "Kernel tried to access user memory",
    "Segfault ",
)
"""How the reason of a panic begins that follows a mistake of the kernel's own."""

DEAF = re.compile(
    STAMP + r"watchdog: CPU\d+: Watchdog detected hard LOCKUP on cpu (\d+)$(?:\n.*)*?\n.*NMI backtrace for cpu \1$"
    r"(?:\n.*){1,2}\n.*RIP: 0010:pv_native_safe_halt\+.*(?:\n.*){1,2} EFLAGS: (\w+)$",
    re.MULTILINE,
)
"""A CPU that gets no interrupt of its timer though it is halted, and its flags."""
INTERRUPTS_ON = 1 << 9

RACE = re.compile(r"BUG: KCSAN: [\w: -]+ in (.*)")
OURS = re.compile(r"\b(?:_R\w+|rust_\w+|bio_task_\w+|(?:bdi|mapping)_dontcache_dirty)\b")
"""Our functions, in Rust and in C. The kernel's C has races that are none of our business."""


def new_log(kind: str) -> Path:
    """A fresh file for a console; the oldest of too many of its kind go."""
    paths.LOG.mkdir(parents=True, exist_ok=True)
    for old in sorted(paths.LOG.glob(f"{kind}-*.log"))[:-LOGS_KEPT]:
        old.unlink(missing_ok=True)
    prefix = time.strftime(f"{kind}-%Y%m%d-%H%M%S-")
    descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=".log", dir=paths.LOG)
    os.close(descriptor)
    os.chmod(name, 0o644)
    return Path(name)


def classify(text: str) -> tuple[str, str] | None:
    """Why the kernel stopped, as (oops, panic or hang; its own words), if it did.

    The kernel is told to panic after an oops and when a watchdog bites, so what
    came before the panic and the panic's reason tell the three apart.
    """
    panic, oops = PANIC.search(text), OOPS.search(text)
    if panic and HANG.search(panic[2]):
        return "hang", panic[1].strip()
    if oops and (not panic or oops.start() < panic.start()):
        return "oops", oops[1].strip()
    if panic:
        return ("oops" if panic[2].startswith(DEATHS) else "panic"), panic[1].strip()
    return None


def deaf_cpu(text: str) -> str | None:
    """The CPU that the machine has left without its timer, if a watchdog found one.

    No mistake of a kernel holds up a CPU that is halted and takes interrupts.
    """
    found = DEAF.search(text)
    return found[1] if found and int(found[2], 16) & INTERRUPTS_ON else None


def warning(text: str) -> str | None:
    """The first line of a kernel warning, if there is one. A data race has to be in what is ours."""
    for match in WARNING.finditer(text):
        race = RACE.match(match[1])
        if not race or OURS.search(race[1]):
            return match[1].strip()
    return None


def tail(text: str, lines: int = 40) -> str:
    """The last lines of the console, without what a terminal would act on."""
    clean = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x20-\x7e\n\t]", "", text.replace("\r", ""))
    return "\n".join(clean.rstrip().splitlines()[-lines:])
