# SPDX-License-Identifier: GPL-2.0
"""Run one boot's share of a benchmark on the machine that is measured.

Usage, in the folder above: python3 -m bench PLAN, where PLAN is JSON: {"steps":
[{"scenario", "mode", "text", "environment", "needs", "keep", "policy",
"memory_max", "counts"}], "interval": SECONDS, "file_system": "xfs", "ext4" or "device",
"device", "directory"}. Only the two last know the machine; the virtual machine
has defaults for them. What happened goes to stdout, a JSON object a line: one
"guest", one "step" or "refused" for each step, one "end". A "refused" line
without a scenario says why there is no result at all. The status is 1 when
something was refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from .kernel import DEBUGFS, Refused, read, say
from .load import run_step
from .place import Place
from .rounds import Rounds

ERRORS = (Refused, KeyError, ValueError, OSError, subprocess.SubprocessError)


def tell_machine() -> None:
    """What there is to know before a load."""
    if not os.path.isdir(DEBUGFS):
        raise Refused(f"{DEBUGFS} is missing: this kernel has no writeback core to compare")
    uname = os.uname()
    say(
        "guest",
        core=read(f"{DEBUGFS}/core"),
        kernel=f"{uname.release} {uname.version}",
        cmdline=read("/proc/cmdline"),
        memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        cpus=os.cpu_count(),
        uptime=float(read("/proc/uptime").split()[0]),
        dirty_ratio=int(read("/proc/sys/vm/dirty_ratio")),
        dirty_background_ratio=int(read("/proc/sys/vm/dirty_background_ratio")),
    )


def run(plan: dict[str, Any]) -> bool:
    """Do what the plan says; was every step done?"""
    tell_machine()
    device = plan.get("device") or os.environ["NVME"]
    directory = plan.get("directory") or "/mnt/bench"
    rounds, whole = Rounds(), True
    with Place(device, plan["file_system"], directory) as place:
        for step in plan["steps"]:
            try:
                run_step(step, place, plan["interval"], rounds)
            except ERRORS as error:
                whole = False
                say("refused", scenario=step["scenario"], mode=step["mode"], reason=str(error))
            if not step["keep"]:
                place.clean()
    rounds.close()
    say("end", core=read(f"{DEBUGFS}/core"), uptime=float(read("/proc/uptime").split()[0]))
    return whole


def main() -> int:
    """The one argument is the plan."""
    try:
        return 0 if run(json.loads(sys.argv[1])) else 1
    except ERRORS as error:
        say("refused", reason=str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
