# SPDX-License-Identifier: GPL-2.0
"""The sync begins when the last job of fio is gone, not when fio is."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import durable, place  # noqa: E402

FAKE = """
import json, sys, threading, time

def named(name):
    with open("/proc/thread-self/comm", "w") as file:
        file.write(name)

def job(number, seconds):
    time.sleep(seconds)
    print("job", number, time.time() * 1e3, flush=True)

named("fio")
helper = threading.Thread(target=threading.Event().wait, daemon=True)
helper.start()
threads = []
plan = json.loads(sys.argv[1])
for number, seconds in enumerate(plan["jobs"]):
    thread = threading.Thread(target=job, args=(number, seconds), daemon=True)
    thread.start()
    if number == 0 and plan["worker"]:
        named("iou-wrk-77")  # a thread has the name of the one that makes it
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        named("fio")
    threads.append(thread)
for thread in threads:
    thread.join()
if plan["lives"]:
    sys.stdin.read()
print("ends", 0, time.time() * 1e3, flush=True)
"""
"""fio as it is seen from outside: two threads of its own, then jobs, all of one name, and workers of another."""


class Fake:
    """Such a process, and what came of watching it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.syncs: list[bool] = []
        """for each sync whether the process was still alive"""

    def start(self, jobs: list[float], lives: bool = True, worker: bool = False) -> subprocess.Popen[str]:
        plan = json.dumps({"jobs": jobs, "lives": lives, "worker": worker})
        command = [sys.executable, "-c", FAKE, plan]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self.process

    def sync(self) -> None:
        assert self.process
        # It must not be reaped here: whoever has started it does that, and may have done so.
        try:
            ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            self.syncs.append(ended is None)
        except ChildProcessError:
            self.syncs.append(False)

    def watch(self, jobs: int) -> durable.Durable:
        assert self.process
        found = durable.Durable(jobs, self.sync)
        found.watch(self.process.pid)
        return found

    def finish(self) -> list[float]:
        """Let it end: when each job did, and it did, in milliseconds of the epoch."""
        assert self.process
        output, _ = self.process.communicate("", timeout=30)
        return [float(line.split()[2]) for line in output.splitlines()]


@pytest.fixture
def fake() -> Iterator[Fake]:
    try:
        os.close(os.pidfd_open(threading.get_native_id(), durable.PIDFD_THREAD))
    except OSError as error:
        pytest.skip(f"this kernel has no pidfd of a thread: {error}")
    found = Fake()
    yield found
    if found.process:
        found.process.kill()
        found.process.wait()


SOON = 500
"""Milliseconds that a busy host may be late."""


def wait(watcher: durable.Durable) -> None:
    """Until the sync is done: long before the process ends."""
    watcher.join(30)
    assert not watcher.is_alive()
    watcher.end()


@pytest.mark.parametrize("worker", [False, True])
def test_it_syncs_when_the_last_job_is_gone_though_the_process_lives(fake: Fake, worker: bool) -> None:
    fake.start([0.4, 0.9, 0.2], worker=worker)
    watcher = fake.watch(3)
    wait(watcher)
    assert fake.syncs == [True]
    *jobs, end = fake.finish()
    assert len(jobs) == len(watcher.seen) == 3
    assert max(jobs) <= watcher.began_ms < max(jobs) + SOON
    assert watcher.began_ms <= watcher.at_ms <= end


@pytest.mark.parametrize(("jobs", "expected"), [([0.3], 3), ([], 1), ([0.3, 0.3], 3)])
def test_a_process_that_ends_without_all_of_its_jobs_is_enough(fake: Fake, jobs: list[float], expected: int) -> None:
    fake.start(jobs, lives=False)
    watcher = fake.watch(expected)
    wait(watcher)
    assert fake.syncs == [False] and len(watcher.seen) == len(jobs)
    *_, end = fake.finish()
    assert end <= watcher.began_ms


def test_it_waits_for_as_many_jobs_as_there_are(fake: Fake) -> None:
    """One that has not begun may be all the load."""
    fake.start([0.1, 0.1])
    watcher = fake.watch(3)
    watcher.join(1.0)
    assert watcher.is_alive() and fake.syncs == []
    fake.finish()
    wait(watcher)
    assert fake.syncs == [False]


def test_a_process_that_is_gone_already_is_no_mystery() -> None:
    """Whoever has run it knows how it ended."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    synced: list[int] = []
    watcher = durable.Durable(1, lambda: synced.append(1))
    watcher.watch(process.pid)
    watcher.end()
    assert synced == [1]


def test_a_bare_device_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sync(2) writes what is cached of it, and leaves the cache of the drive as it is."""
    where = place.Place.__new__(place.Place)
    flushed: list[int] = []
    where.bare, where.descriptor = True, 77
    monkeypatch.setattr(os, "fsync", flushed.append)
    monkeypatch.setattr(os, "sync", None)
    where.sync()
    assert flushed == [77]


def fail() -> None:
    raise OSError(5, "Input/output error")


def test_a_sync_that_fails_is_told(fake: Fake) -> None:
    fake.start([], lives=False)
    watcher = durable.Durable(1, fail)
    assert fake.process
    watcher.watch(fake.process.pid)
    fake.finish()
    with pytest.raises(OSError, match="Input/output error"):
        watcher.end()
    assert watcher.at_ms == 0.0


def test_a_long_sync_is_part_of_the_time(fake: Fake) -> None:
    fake.start([0.1])
    sync: Callable[[], None] = lambda: time.sleep(0.4)  # noqa: E731
    watcher = durable.Durable(1, sync)
    assert fake.process
    watcher.watch(fake.process.pid)
    wait(watcher)
    assert 400 <= watcher.at_ms - watcher.began_ms < 400 + SOON


@pytest.mark.parametrize("clock", ["cpu", "clock_gettime"])
def test_real_fio_is_what_the_fake_one_pretends_to_be(fake: Fake, tmp_path: Path, clock: str) -> None:
    """Its jobs are seen, all of them and nothing else, one that begins late among them.

    As the job files have it, it is told which clock to take: otherwise it tries one first, with threads of its name.
    """
    command = ["fio", "--output-format=json+", "--eta=never", f"--directory={tmp_path}", "--thread", "--ioengine=psync"]
    command += ["--rw=write", "--bs=4k", "--size=1m", "--rate=2m", f"--clocksource={clock}"]
    command += ["--name=one", "--numjobs=2", "--name=two", "--startdelay=1"]
    ended: list[float] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        watcher = durable.Durable(3, lambda: ended.append(1e3 * time.time()))
        watcher.watch(process.pid)
        output, _ = process.communicate(timeout=60)
        watcher.end()
    jobs = json.loads(output[output.index("{\n") :])["jobs"]
    assert len(jobs) == len(watcher.seen) == 3
    last = max(job["job_start"] + job["write"]["runtime"] for job in jobs)
    assert last - 2 <= watcher.began_ms < last + SOON
    assert max(job["job_start"] for job in jobs) - min(job["job_start"] for job in jobs) > 800
