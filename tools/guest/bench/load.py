# SPDX-License-Identifier: GPL-2.0
"""One scenario in one mode: load, look, clean up.

fio's output is handed on as the text that it is: to take it apart here would
take an emulated CPU long.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import Any

from .durable import Durable
from .kernel import Refused, available, counter_now, read, say, vmstat, write
from .pages import cached_pages
from .place import Place
from .rounds import Rounds
from .sampler import Sampler
from .usage import Usage

FIO_SECONDS = 120
"""What a load may take in a guest."""

JOB = "/tmp/job.fio"
FIO = ["fio", "--output-format=json+", "--eta=never", JOB]
CHUNK = 1 << 20
DROPPED_S = 0.1
"""After which what is to be dropped is, for a task does that after the writeback."""


def execute(
    command: list[str],
    environment: dict[str, str],
    seconds: float,
    durable: Durable | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a load, and what waits for its jobs and syncs."""
    whole = [word.replace("${BENCH_DIRECTORY}", environment["BENCH_DIRECTORY"]) for word in command]
    pipe = subprocess.PIPE
    with subprocess.Popen(whole, env=environment, stdout=pipe, stderr=pipe, text=True, cwd="/tmp") as process:
        try:
            if durable:
                durable.watch(process.pid)
            output, errors = process.communicate(timeout=seconds)
        except BaseException:
            process.kill()
            raise
    if durable:
        durable.end()
    return subprocess.CompletedProcess(whole, process.returncode, output, errors)


def lay_out(step: dict[str, Any], place: Place, environment: dict[str, str], seconds: float) -> None:
    """Make the files that a load expects, where no earlier one has left them."""

    def lacking() -> dict[str, int]:
        there = {os.path.basename(path): os.stat(path).st_size for path in place.files()}
        return {name: size for name, size in step["needs"].items() if there.get(name, 0) < size}

    if place.bare or not lacking():
        return
    if step["command"]:
        for name, size in lacking().items():
            with open(os.path.join(place.directory, name), "wb") as file:
                for _ in range(-(-size // CHUNK)):
                    file.write(bytes(CHUNK))
        return
    done = execute(["fio", "--create_only=1", JOB], environment, seconds)
    # Its status says nothing: with exitall the first job that has nothing to do ends fio by a signal.
    if lacking():
        raise Refused(f"fio could not lay out its files: {' '.join((done.stderr or done.stdout).split())[-300:]}")


@contextlib.contextmanager
def settings(wanted: Mapping[str, int]) -> Iterator[None]:
    """Other values below /proc/sys for a while. To set a limit in bytes clears the one in percent, and back."""
    names = [name for path in wanted for name in (path, path.replace("_bytes", "_ratio"))]
    before = {name: read(f"/proc/sys/{name}") for name in names}
    try:
        for name, value in wanted.items():
            write(f"/proc/sys/{name}", str(value))
        yield
    finally:
        for name, text in before.items():
            if text != "0":
                write(f"/proc/sys/{name}", text)


@contextlib.contextmanager
def memory_in_use(bytes_: int) -> Iterator[None]:
    """A task beside the load that goes through so much memory of its own, again and again."""
    if not bytes_:
        yield
        return
    with subprocess.Popen(["load", "touch", str(bytes_)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            if process.stdout.readline().strip() != "touched":
                raise Refused(f"{bytes_} bytes of memory are not to be had")
            yield
            if process.poll() is not None:
                raise Refused("the task beside the load did not live to its end; is the memory too small?")
        finally:
            process.kill()


def run_step(step: dict[str, Any], place: Place, interval: float, rounds: Rounds | None, seconds: float) -> None:
    """Run it, and say what there was to see. Without rounds the flusher's are not counted."""
    write(JOB, step["text"])
    environment = {**os.environ, **step["environment"], **place.environment}
    command = step["command"] or FIO
    bdi = place.bdi
    lay_out(step, place.behind, {**environment, **place.behind.environment}, seconds)
    place.begin_cold()
    place.use(step["mode"])
    with settings(step["sysctls"]), memory_in_use(int(step["touched"] * available())):
        background = vmstat(read("/proc/vmstat").encode(), b"nr_dirty_background_threshold")
        before = counter_now(bdi)
        usage = Usage.now(bdi)
        sampler = Sampler(bdi, interval, place.server())
        if rounds:
            rounds.begin()
        sampler.start()
        durable = Durable(step["jobs"], place.sync)
        with place.watched():
            try:
                # Our own program keeps the time itself.
                done = execute(command, environment, seconds, None if step["command"] else durable)
            finally:
                samples = sampler.stop()
                flusher = rounds.end() if rounds else None
        used = Usage.now(bdi).since(usage)
        cached_at_end, at_end = cached_pages(place.files()), counter_now(bdi)
        place.sync()
        after, used_with_sync = counter_now(bdi), Usage.now(bdi).since(usage)
    time.sleep(DROPPED_S)
    cached_after = cached_pages(place.files())
    say(
        "step",
        name=step["name"],
        status=done.returncode,
        fio=done.stdout,
        sync_began_ms=round(durable.began_ms, 3),
        durable_at_ms=round(durable.at_ms, 3),
        stderr=done.stderr[-2000:],
        server_threads=len(sampler.server),
        samples_began_ms=round(1e3 * sampler.began, 3),
        samples=samples,
        dontcache_round=flusher,
        background_pages=background,
        counter_before=before,
        counter_at_end=at_end,
        counter_after=after,
        cached_at_end=cached_at_end,
        cached_after=cached_after,
        used=used,
        used_with_sync=used_with_sync,
    )
