# SPDX-License-Identifier: GPL-2.0
"""tools/enter where it cannot do its work: one line, a status, nothing left behind.

The mmdebstrap of these tests is a script of our own; the real one has made the
build root that the tests run in.
"""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from rust_writeback import paths

ENTER = paths.TOOLS / "enter"


class Machine:
    """A machine with an empty cache and an mmdebstrap that does as told."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache" / "rust-writeback"
        self.bin, self.mirror = folder / "bin", folder / "mirror"
        self.bin.mkdir()
        (self.mirror / "dists/trixie").mkdir(parents=True)
        (self.mirror / "dists/trixie/Release").touch()

    def mmdebstrap(self, script: str) -> None:
        """Install an mmdebstrap; $root is where it is to make the tree."""
        find = 'for word; do case $word in */root-*) root=$word ;; esac; done; mkdir "$root"'
        (self.bin / "mmdebstrap").write_text(f"#!/bin/sh\n{find}\n{script}\n")
        (self.bin / "mmdebstrap").chmod(0o755)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        settings = {
            "PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "DEBIAN_MIRROR": f"file://{self.mirror}",
            **environment,
        }
        return subprocess.Popen([ENTER, *arguments], env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        process = self.start(*arguments, **environment)
        _, complaint = process.communicate(timeout=60)
        return process.returncode, complaint

    def roots(self) -> list[str]:
        return [path.name for path in self.cache.glob("root-*") if path.is_dir()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("script", "mirror", "told"),
    [
        ("", {}, "error: mmdebstrap is missing; install it with: apt-get install mmdebstrap debian-archive-keyring\n"),
        ("exit 1", {"DEBIAN_MIRROR": "http://127.0.0.1:9/debian"}, "error: the Debian mirror http://.* does not answer; .*\n"),
        ("touch $root/half; echo E >&2; exit 25", {}, "(.*\n)*error: the build root could not be made from file://.*\n"),
    ],
)
def test_a_root_that_cannot_be_made_is_reported_and_removed(
    machine: Machine, script: str, mirror: dict[str, str], told: str
) -> None:
    if script:
        machine.mmdebstrap(script)
    status, complaint = machine.run("true", **mirror)
    assert status == 1 and re.fullmatch(told, complaint)
    assert not machine.roots()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_ended_while_making_the_root(machine: Machine, number: signal.Signals) -> None:
    flag = f"{machine.folder}/started"
    machine.mmdebstrap(f"touch {flag}; exec sleep 4242")
    process = machine.start("true")
    wait(lambda: os.path.exists(flag))
    process.send_signal(number)
    process.wait(timeout=20)
    wait(lambda: subprocess.run(["pgrep", "--full", "sleep 4242"], stdout=subprocess.DEVNULL, check=False).returncode == 1)
    assert process.returncode != 0
    (lock,) = machine.cache.glob("root-*.lock")
    wait(lambda: not subprocess.run(["flock", "--nonblock", lock, "true"], check=False).returncode)
    # A half-made tree may be left, but not under the name of a whole one.
    assert all(name.endswith(".part") for name in machine.roots())
    machine.mmdebstrap("exit 1")
    status, complaint = machine.run("true")
    assert status == 1 and "waiting" not in complaint
    assert not machine.roots()


def test_bad_arguments(machine: Machine) -> None:
    assert machine.run("--nonsense")[1].startswith("error: tools/enter: unknown option --nonsense")
    assert machine.run("--share", "/nowhere", "true")[1].startswith("error: --share /nowhere: no such folder")
    assert machine.run("--target", "/nowhere", "true")[1].startswith("error: TARGET=/nowhere does not exist; name a folder")
    assert machine.run("true", KERNEL_SRC="/nowhere")[1].startswith("error: KERNEL_SRC=/nowhere does not exist")


def wait(condition: object, seconds: float = 20) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
