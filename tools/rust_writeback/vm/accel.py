# SPDX-License-Identifier: GPL-2.0
"""Finds the accelerator that works on this host.

A /dev/kvm that can be opened proves nothing: QEMU may assert, or the guest may hang. So KVM is used if a short
boot of the built kernel under KVM has succeeded. The verdict holds for one boot of the host and one version of QEMU.
"""

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from .. import paths, steps
from . import qemu

VERDICT = paths.BUILD / "accel.json"
DEVICE = Path("/dev/kvm")


def _key() -> str:
    """The host's boot and QEMU's version."""
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {qemu.version()}"


def remember(accel: str) -> None:
    """Keep a verdict. KVM's failure counts only once the same kernel ran without it."""
    if _recall() != accel:
        steps.write_whole(VERDICT, json.dumps({"key": _key(), "accel": accel}) + "\n")


def _recall() -> str | None:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        verdict = json.loads(VERDICT.read_text())
        if verdict["key"] == _key() and verdict["accel"] in ("kvm", "tcg"):
            return str(verdict["accel"])
    return None


def choose(trial: Callable[[], bool]) -> str:
    """kvm or tcg; the trial boots under KVM and says whether that worked."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return "tcg"
    known = _recall()
    if known:
        return known
    with steps.only_one("accel"):
        known = _recall()
        if known:
            return known
        if not trial():
            return "tcg"
        remember("kvm")
        return "kvm"
