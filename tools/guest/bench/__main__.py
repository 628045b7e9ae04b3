# SPDX-License-Identifier: GPL-2.0
"""Run one boot's share of a benchmark on the machine that is measured.

Usage, in the folder above: python3 -m bench PLAN, where PLAN is JSON: {"steps":
[{"name", "mode", "text", "environment", "command", "jobs", "needs", "keep",
"touched", "sysctls"}], "interval": SECONDS, "file_system": "xfs", "ext4", "nfs" or "device"}.
The drive is the guest's NVMe. Instead there may be a "drive", {"megabytes",
"nanoseconds"}, which is made in memory.
On real hardware there is "machine" besides, {"seconds": of one load at most},
and either a "directory", which exists, on whatever file system, or a "device",
which is written over; nothing else is touched then, and what this kernel does
not have is left out.

What happened goes to stdout, a JSON object a line: one "guest", one "step" or
"refused" for each step, one "end". A "refused" line without a name says why
there is no result at all. The status is 1 when something was refused.
"""

import json
import os
import subprocess
import sys
from typing import Any

from . import drive
from .kernel import DEBUGFS, Refused, available, read, say
from .load import FIO_SECONDS, run_step
from .nfs import Nfs
from .place import Disk, Folder, Place
from .rounds import Rounds

ERRORS = (Refused, KeyError, ValueError, OSError, subprocess.SubprocessError)

NFS, SERVED = "nfs", "xfs"
"""A server of NFS, and what it has its files on."""

LARGEST = 1 << 20
"""Bytes that it takes at once, as one with more memory than a guest does."""


def active_core() -> str:
    """The core that runs, or "kernel" where there is none of ours."""
    try:
        return read(f"{DEBUGFS}/core")
    except OSError:
        return "kernel"


def place_of(plan: dict[str, Any], device: str) -> Place:
    """Where the loads go."""
    served = plan["file_system"] == NFS
    if "machine" in plan:
        folder = Folder(plan["directory"]) if "directory" in plan else Disk(plan["device"], plan["file_system"])
        return Nfs(folder) if served else folder
    return Nfs(Place(device, SERVED), LARGEST) if served else Place(device, plan["file_system"])


def run(plan: dict[str, Any]) -> bool:
    """Do what the plan says; was every step done?"""
    machine, device = plan.get("machine", {}), os.environ.get("NVME", "")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if "drive" in plan:
        device, memory = drive.make(**plan["drive"]), available()
    uname = os.uname()
    say("guest", core=active_core(), kernel=f"{uname.release} {uname.version}", memory=memory, cpus=os.cpu_count())
    # Tracing belongs to whoever runs a machine; only a guest's is ours.
    rounds, whole = None if machine else Rounds(), True
    with place_of(plan, device) as place:
        for step in plan["steps"]:
            try:
                run_step(step, place, plan["interval"], rounds, machine.get("seconds", FIO_SECONDS))
            except ERRORS as error:
                whole = False
                say("refused", name=step["name"], reason=str(error))
            if not step["keep"]:
                place.clean()
    say("end", core=active_core())
    return whole


def main() -> int:
    """The one argument is the plan."""
    try:
        return 0 if run(json.loads(sys.argv[1])) else 1
    except ERRORS as error:
        say("refused", reason=str(error))
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
