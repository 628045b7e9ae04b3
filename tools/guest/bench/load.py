# SPDX-License-Identifier: GPL-2.0
"""One scenario in one mode: load, look, clean up.

fio's output is handed on as the text that it is: to take it apart here would
take an emulated CPU long.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

from .counts import Counts
from .group import MemoryGroup
from .kernel import DEBUGFS, Refused, counter_now, pages_migrated, read, say, write
from .pages import cached_pages
from .place import Place
from .rounds import Rounds
from .sampler import Sampler
from .usage import Usage

FIO_SECONDS = 120
"""What a load may take in a guest."""

JOB = "/tmp/job.fio"


def choose_policy(name: str) -> None:
    """Have the Rust core write back in another way than by a kick."""
    path = f"{DEBUGFS}/policy"
    try:
        write(path, name)
        active = read(path)
    except OSError as error:
        raise Refused(f"this kernel does not take the policy {name}: {error}") from None
    if active != name:
        raise Refused(f"the policy is {active}, not {name}")


def fio(
    arguments: list[str],
    environment: dict[str, str],
    group: MemoryGroup,
    seconds: float,
    started: Callable[[int], None] = lambda process: None,
) -> subprocess.CompletedProcess[str]:
    """Run fio on the job file, inside the group; started is told its process."""
    command = [*group.prefix, "fio", *arguments, JOB]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True, cwd="/tmp") as process:
        try:
            started(process.pid)
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Refused(f"fio did not end within {seconds} seconds") from None
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def lay_out(step: dict[str, Any], place: Place, environment: dict[str, str], seconds: float) -> None:
    """Make the files that a load expects, where no earlier one has left them."""

    def complete() -> bool:
        there = {os.path.basename(path): os.stat(path).st_size for path in place.files()}
        return all(there.get(name, 0) >= size for name, size in step["needs"].items())

    if place.bare or complete():
        return
    done = fio(["--create_only=1"], environment, MemoryGroup(0), seconds)
    # Its status says nothing: with exitall the first job that has nothing to do ends fio by a signal.
    if not complete():
        raise Refused(f"fio could not lay out its files: {' '.join((done.stderr or done.stdout).split())[-300:]}")


def run_step(step: dict[str, Any], place: Place, interval: float, rounds: Rounds | None, seconds: float) -> None:
    """Run it, and say what there was to see. Without rounds the flusher's are not counted."""
    write(JOB, step["text"])
    environment = {**os.environ, **step["environment"], **place.environment}
    arguments = ["--output-format=json+", "--eta=never"]
    bdi = place.bdi
    if step["policy"]:
        choose_policy(step["policy"])
    lay_out(step, place, environment, seconds)
    place.begin_cold()
    with MemoryGroup(step["memory_max"]) as group, Counts(step["counts"]) as counts:
        before, migrated, usage = counter_now(bdi), pages_migrated(), Usage.now(bdi)
        sampler = Sampler(bdi, interval)
        if rounds:
            rounds.begin()
        sampler.start()
        begin = time.monotonic()
        try:
            done = fio(arguments, environment, group, seconds, sampler.watch)
        finally:
            took = time.monotonic() - begin
            samples = sampler.stop()
            flusher = rounds.end() if rounds else None
        used = Usage.now(bdi).since(usage)
        cached_at_end, at_end = cached_pages(place.files()), counter_now(bdi)
        begin = time.monotonic()
        place.sync()
        sync = time.monotonic() - begin
        cached_after, after = cached_pages(place.files()), counter_now(bdi)
        memory, counted = group.result(), counts.result()
    say(
        "step",
        scenario=step["scenario"],
        mode=step["mode"],
        command=["fio", *arguments, JOB],
        environment=step["environment"],
        policy=step["policy"],
        status=done.returncode,
        fio=done.stdout,
        stderr=done.stderr[-2000:],
        seconds=round(took, 3),
        sync_seconds=round(sync, 3),
        sample_seconds=round(sampler.cost, 4),
        samples=samples,
        dontcache_rounds=flusher,
        pages_migrated=pages_migrated() - migrated,
        counter_before=before,
        counter_at_end=at_end,
        counter_after=after,
        cached_at_end=cached_at_end,
        cached_after=cached_after,
        used=used,
        used_with_sync=Usage.now(bdi).since(usage),
        memory_group=memory,
        counts=counted,
    )
