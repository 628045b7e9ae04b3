# SPDX-License-Identifier: GPL-2.0
"""The sync begins when the last job of fio is gone, not when fio is."""

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from bench import durable


@pytest.fixture(autouse=True)
def pidfd_of_a_thread() -> None:
    try:
        os.close(os.pidfd_open(threading.get_native_id(), durable.PIDFD_THREAD))
    except OSError as error:
        pytest.skip(f"this kernel has no pidfd of a thread: {error}")


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_the_sync_begins_when_the_process_ends_and_its_error_is_raised(seconds: float) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    watcher, begin = durable.Durable(1, fail), 1e3 * time.time()
    with subprocess.Popen(["sleep", str(seconds)]) as process:
        if not seconds:
            process.wait()
        watcher.watch(process.pid)
        with pytest.raises(OSError, match="Input/output error"):
            watcher.end()
    assert watcher.began_ms >= begin + 1e3 * seconds


@pytest.mark.parametrize("clock", ["cpu", "clock_gettime"])
def test_the_jobs_of_fio_and_nothing_else_are_waited_for(tmp_path: Path, clock: str) -> None:
    """One begins late. As the job files have it, fio is told which clock to take: else it tries one, with threads of its name."""
    command = ["fio", "--output-format=json+", "--eta=never", f"--directory={tmp_path}", "--thread", "--ioengine=psync"]
    command += ["--rw=write", "--bs=4k", "--size=1m", "--rate=2m", f"--clocksource={clock}"]
    command += ["--name=one", "--numjobs=2", "--name=two", "--startdelay=1"]
    begun, times = threading.Event(), []

    def sync() -> None:
        times.append(1e3 * time.time())
        begun.set()
        times.append(1e3 * time.time())

    # fio cannot end before somebody reads what it prints.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pipesize=4096) as process:
        watcher = durable.Durable(3, sync)
        watcher.watch(process.pid)
        assert begun.wait(60), "the sync waits for fio"
        watcher.end()
        ended = 1e3 * time.time()
        output, _ = process.communicate(timeout=60)
    jobs = json.loads(output[output.index("{\n") :])["jobs"]
    assert len(jobs) == len(watcher.seen) == 3
    last = max(job["job_start"] + job["write"]["runtime"] for job in jobs)
    assert last - 2 <= watcher.began_ms <= times[0], "the time begins before the sync"
    assert times[1] <= watcher.at_ms <= ended, "the time ends with the sync"
