# SPDX-License-Identifier: GPL-2.0
"""What happens to bios that ask for a task, counted inside the kernel.

bio_endio() gives such a bio to a worker, which calls its end function, unless the
Rust core calls it at once. A kprobe on the one and on the others, with a histogram
that matches them by the bio, gives the time between; a histogram of a trace
event of the workqueues tells how often a worker ran. All of it slows the load a
little, so it is for loads that ask for it.
"""

from __future__ import annotations

import contextlib
import os
import re

from .kernel import DEBUGFS, TRACING, Refused, add, read

QUEUED = "bio_endio"
"""Not __bio_complete_in_task(): it begins with a static key, where no kprobe may stand, and the compiler inlines it."""

FLAGS, IN_TASK = 20, 1 << 13
"""Where bi_flags stands in struct bio, and BIO_COMPLETE_IN_TASK in it."""

ENDED = ("bh_end_async_write", "ioend_writeback_end_bio", "ext4_end_bio", "xfs_end_bio")
"""The end functions of buffered writes: buffer heads (the bare device), iomap, ext4, xfs."""

WORKERS = ("bio_complete_work_fn", "bio_task_work", "dropbehind_work_fn")
"""The functions of the C core's worker and of the Rust core's: of one that ends bios, and one that drops folios."""

KPROBES = f"{TRACING}/kprobe_events"
SYNTHETIC = f"{TRACING}/synthetic_events"
LATENCY = "bench_latency u64 usecs"
EXECUTE = "workqueue/workqueue_execute_start"
SIZE = 16384
BUCKET = 8
"""Microseconds of one step of the latency's histogram."""


def entries(text: str, key: str) -> dict[str, int]:
    """The lines of a hist file: key -> hits; of a bucket, ~ 8-15, its upper end."""
    found = re.findall(rf"^\{{ {key}: *(?:~ \d+-)?(.*?) *\}} hitcount: +(\d+)", text, re.MULTILINE)
    return {name: int(hits) for name, hits in found}


def total(text: str, name: str) -> int:
    """One of the sums below a hist file: Hits, Dropped."""
    match = re.search(rf"^ +{name}: (\d+)$", text, re.MULTILINE)
    if not match:
        raise Refused(f"a histogram of the kernel does not say {name}")
    return int(match[1])


class Counts:
    """The probes, for as long as they are wanted; nothing at all otherwise."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.undo: list[tuple[str, str]] = []

    def __enter__(self) -> Counts:
        if not self.wanted:
            return self
        if not os.path.exists(KPROBES) or not os.path.exists(SYNTHETIC):
            raise Refused(
                "this kernel counts nothing:"
                " it needs CONFIG_KPROBE_EVENTS, CONFIG_HIST_TRIGGERS and CONFIG_SYNTH_EVENTS"
            )
        try:
            self._install()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self.undo:
            with contextlib.suppress(OSError):
                add(*self.undo.pop())

    def _add(self, path: str, text: str, undo: str) -> None:
        try:
            add(path, text)
        except OSError as error:
            raise Refused(f"the kernel does not take {text}: {error.strerror}") from None
        self.undo.append((path, undo))

    def _probe(self, name: str, function: str, more: str = "") -> bool:
        """A kprobe on a function whose first argument is the bio; is there such a function?"""
        try:
            self._add(KPROBES, f"p:bench/{name} {function} bio=$arg1{more}", f"-:bench/{name}")
        except Refused:
            return False
        return True

    def _trigger(self, event: str, text: str) -> None:
        self._add(f"{TRACING}/events/{event}/trigger", text, f"!{text}")

    def _install(self) -> None:
        # The buffer must not fill up: where it is full, timestamps come from another clock.
        self._add(f"{TRACING}/options/overwrite", "1", read(f"{TRACING}/options/overwrite"))
        if not self._probe("queued", QUEUED, f" flags=+{FLAGS}($arg1):u16"):
            raise Refused(f"no kprobe can be set on {QUEUED}")
        ends = [function for function in ENDED if self._probe(function, function)]
        if not ends:
            raise Refused("this kernel has none of the end functions that are known here")
        self._add(SYNTHETIC, LATENCY, f"!{LATENCY}")
        self._trigger("bench/queued", f"hist:keys=bio:since=common_timestamp.usecs:size={SIZE} if flags & {IN_TASK}")
        for number, function in enumerate(ends):
            took = f"took{number}"
            match = f"onmatch(bench.queued).bench_latency(${took})"
            text = f"hist:keys=bio:{took}=common_timestamp.usecs-$since:size={SIZE}:{match}"
            self._trigger(f"bench/{function}", text)
        self._trigger("synthetic/bench_latency", f"hist:keys=usecs.buckets={BUCKET}:size={SIZE}")
        self._trigger(EXECUTE, "hist:keys=function.sym")

    def result(self) -> dict[str, object]:
        """Bios, runs of workers, and how many bios waited how many microseconds."""
        if not self.wanted:
            return {}
        queued = read(f"{TRACING}/events/bench/queued/hist")
        latency = read(f"{TRACING}/events/synthetic/bench_latency/hist")
        workers = entries(read(f"{TRACING}/events/{EXECUTE}/hist"), "function")
        runs = {name: hits for text, hits in workers.items() if (name := text.split()[-1]) in WORKERS}
        dropped = {"bios": total(queued, "Dropped"), "latency_us": total(latency, "Dropped")}
        return {
            "bios": total(queued, "Hits"),
            "runs": runs,
            "latency_us": entries(latency, "usecs"),
            "dropped": dropped,
        }
