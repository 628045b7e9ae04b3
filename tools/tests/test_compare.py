# SPDX-License-Identifier: GPL-2.0
"""A comparison reports what it can prove, and refuses all else."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from bench_samples import accept, boot, steps
from rust_writeback.bench import results, summary
from rust_writeback.errors import Failure

from bench import kernel as files
from bench import usage

SCENARIOS = ("sequential", "random", "writers-4", "writers-32")
STEPS = steps(*(f"{name}/xfs/{mode}" for mode in ("buffered", "dontcache") for name in SCENARIOS))


UNMOVED = {"samples": [[0.0, *[0] * 7], [0.1, 900, *[0] * 6]], "dontcache_round": 0}
LEFT_OVER = UNMOVED | {"samples": [[0.0, 0, 0, 5, *[0] * 4], [0.1, 900, 0, 5, *[0] * 4]], "counter_before": 5, "counter_at_end": 5}
"""The counter is what an earlier load has left."""

THRESHOLD = 2 * (1 << 30) // 10 // results.PAGE
"""of the background, of which the load writes five times as much"""


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda lines: lines[0].update(core="c"), "the active core was c"),
        (lambda lines: lines[-1].update(core="c"), "the active core was c"),
        (lambda lines: lines.insert(1, {"kind": "refused", "reason": "no drive"}), "no drive"),
        (lambda lines: lines.pop(), "did not finish its plan"),
        (lambda lines: lines.clear(), "did not finish its plan"),
        (lambda lines: lines.pop(3), "did not run the scenarios"),
        (lambda lines: lines[5].update(UNMOVED), "never moved"),
        (lambda lines: lines[5].update(LEFT_OVER), "never moved"),
        (lambda lines: lines[5].update(samples=[]), "nothing was sampled"),
        (lambda lines: lines[1]["samples"][1].__setitem__(results.COUNTED, 1), "moved without DONTCACHE"),
        (lambda lines: lines[1].update(dontcache_round=4), "moved without DONTCACHE"),
        (lambda lines: lines[1].update(status=1), "fio ended with status 1"),
        (lambda lines: lines[1]["used_with_sync"].update(device_flushes=0), "its drive was never flushed"),
        (lambda lines: lines[4]["cached_after"].popitem(), "31 files of 32"),
        (lambda lines: lines[1].update(background_pages=THRESHOLD), "it wrote 1074 MB, less than 10 times the background"),
    ],
)
def test_a_measurement_that_did_not_exercise_its_subject_is_refused(spoil: Callable[[list[dict[str, Any]]], object], words: str) -> None:
    lines = boot("rust", STEPS)
    assert len(accept(lines, STEPS, 2, "rust")) == 8
    spoil(lines)
    with pytest.raises(Failure, match=words) as caught:
        accept(lines, STEPS, 2, "rust")
    assert "\n" not in str(caught.value)


def latency(bins: dict[int, int]) -> results.Measurement:
    """A measurement whose requests took so many nanoseconds."""
    planned = steps("sequential/xfs/buffered")
    (found,) = accept(boot("rust", planned), planned, 1, "rust")
    return replace(found, outcome=replace(found.outcome, latency=Counter(bins)))


@pytest.mark.parametrize(("requests", "told"), [(19, []), (20, [50.0]), (9999, [50.0, 99.0]), (10_000, [50.0, 99.0, 99.9])])
def test_a_percentile_takes_ten_requests_beyond_it(requests: int, told: list[float]) -> None:
    found = latency({1_000_000 * number: 1 for number in range(1, requests + 1)})
    assert [percent for percent in results.PERCENTILES if found.percentile_ms(percent) is not None] == told


@pytest.mark.parametrize(
    ("bins", "percent", "value"),
    [
        (dict.fromkeys(range(1, 101), 1000), 50, 50),
        (dict.fromkeys(range(1, 101), 1000), 50.1, 51),
        # 0.999 * 30000 is a little more than 29970 in binary.
        ({1: 29_970, 2: 30}, 99.9, 1),
        # Of a quick job and a slow one together, it is not the mean of theirs.
        ({10: 100_000, 1000: 1000}, 99, 10),
        ({10: 100_000, 1000: 1000}, 99.9, 1000),
    ],
)
def test_a_percentile_needs_enough_requests(bins: dict[int, int], percent: float, value: int) -> None:
    assert latency(bins).percentile_ms(percent) == value / 1e6


def test_temporary_files_neither_stay_nor_count() -> None:
    planned = steps("temp-burst/xfs/buffered")
    lines = boot("rust", planned)
    stream, temporary = accept(lines, planned, 1, "rust")
    assert stream.written == stream.outcome.bytes == 8 << 20
    assert stream.moved == stream.outcome.bytes + temporary.outcome.bytes
    # fio removes it at the end, or did not come to it: neither is a wrong load.
    lines[1]["cached_after"]["temporary.0"] = 8192
    assert accept(lines, planned, 1, "rust")[0].cached_pages == 5000


@pytest.mark.parametrize(("name", "read"), [("sequential", False), ("sequential-read", True)])
def test_the_second_half_begins_when_half_of_it_is_on_the_drive(name: str, read: bool) -> None:
    """Of a drive that is fast first and slow then, the whole run says neither."""
    planned = steps(f"{name}/xfs/direct")
    lines = boot("rust", planned)
    moved = ((0.0, 0), (0.2, 80 << 20), (0.4, 120 << 20), (1.4, 200 << 20))
    lines[1]["samples"] = [[seconds, *[0] * 5, read * count, (not read) * count] for seconds, count in moved]
    lines[1]["samples_began_ms"] -= 50
    (found,) = accept(lines, planned, 1, "rust")
    half = found.outcome.bytes / 2e6
    assert found.half_ms == pytest.approx(250)
    assert found.start_mb_per_s == pytest.approx(half / 0.25)
    assert found.second_half_mb_per_s == pytest.approx(half / (found.outcome.durable_ms / 1e3 - 0.25))
    lines[1]["samples_began_ms"] += 2000
    with pytest.raises(Failure, match="do not show when half of it was on the drive"):
        accept(lines, planned, 1, "rust")


def test_paced_loads_and_endless_jobs_have_no_second_half() -> None:
    planned = steps("paced/xfs/buffered", "noisy/xfs/buffered")
    paced, writer, readers = accept(boot("rust", planned), planned, 1, "rust")
    assert (paced.paced, writer.paced, writer.half_ms, readers.half_ms) == (True, False, 400, None)
    of_paced = {metric.name for metric in summary.FULL if metric.of_boot(paced) is not None}
    assert not of_paced & {summary.MAIN, "start", "mb_per_s", "handed_over"}


READ = steps("device-read/device/buffered", "device-read/device/dontcache", "random-read/xfs/buffered")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda lines: lines[1].update(cached_at_end={}), "nothing that was read stayed cached"),
        (lambda lines: lines[2].update(cached_at_end={"all": 40000}), "what was read stayed cached"),
        (lambda lines: lines[0].update(memory=208 << 20), "random-read/xfs/buffered, rust core: its files fit into the guest's memory"),
    ],
)
def test_cached_pages_prove_the_mode_of_reads(spoil: Callable[[list[dict[str, Any]]], object], words: str) -> None:
    lines = boot("rust", READ)
    accept(lines, READ, 1, "rust")
    spoil(lines)
    with pytest.raises(Failure, match=words):
        accept(lines, READ, 1, "rust")


def test_the_driver_reads_the_files_of_the_kernel() -> None:
    counters = b"7:0 1 2\n259:1 30 40\n259:10 5 6\n"
    assert files.counter(counters, b"259:1") == 30
    with pytest.raises(files.Refused, match="no line for 259:2"):
        files.counter(counters, b"259:2")
    vmstat = b"nr_free_pages 9\nnr_dirty_threshold 7\nnr_dirty 42\nnr_writeback_temp 1\nnr_writeback 3\n"
    assert (files.vmstat(vmstat, b"nr_dirty"), files.vmstat(vmstat, b"nr_writeback")) == (42, 3)
    stat = b"  10 0 80 3  7 2 4096 9  0 5 6 1 0 8 2 2 9\n"
    assert files.transferred(stat) == {"read": 80 * 512, "written": 4096 * 512, "writes": 7, "flushes": 2}


def test_a_worker_that_was_not_there_began_at_nothing() -> None:
    before, after = usage.Usage(10, {1: 50, 2: 7}, {"writes": 2}), usage.Usage(25, {1: 60, 3: 5}, {"writes": 5})
    assert after.since(before) == {"context_switches": 15, "worker_seconds": 15e-6, "device_writes": 3}
