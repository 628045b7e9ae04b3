# SPDX-License-Identifier: GPL-2.0
"""The benchmark through an NFS server: what proves a server's mode, who is blocked, and why there is no server."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_samples import LOADS, accept, boot
from rust_writeback.bench import results, summary, target
from rust_writeback.errors import Failure

RUST = "rust"
STEPS = results.plan([LOADS[f"sequential/nfs/{mode}"] for mode in ("buffered", "dontcache", "direct")])
CACHED, GONE = {"cache": 40000, "files": 1, "by_file": {"large.data": 40000}}, {
    "cache": 0,
    "files": 1,
    "by_file": {"large.data": 0},
}


def lines_of() -> list[dict[str, Any]]:
    """A boot in which 16 threads served."""
    lines = boot("rust", STEPS)
    lines[0]["memory"] = 100 << 20
    for line, cached in zip(lines[1:4], (CACHED, GONE, GONE), strict=True):
        line |= {"server_threads": 16, "cached_at_end": cached, "cached_after": cached}
    return lines


def still(line: dict[str, Any]) -> None:
    """Nobody saw the counter move."""
    line["dontcache_rounds"] = {"rounds": 0, "most_pages": 0}
    for row in line["samples"]:
        row[results.COUNTED] = 0


def test_a_client_is_told_to_be_direct_whatever_the_server_does() -> None:
    for step in STEPS:
        plan = step.plan()
        assert plan["environment"] == {"BENCH_DIRECT": "1", "BENCH_UNCACHED": "0"}
        assert plan["mode"] == step.load.mode
    assert [m.mode for m in accept(lines_of(), STEPS, 1, RUST)] == ["buffered", "dontcache", "direct"]


def test_what_a_server_leaves_proves_it_where_every_write_was_synced() -> None:
    def of(scenario: str, cached: dict[str, Any]) -> None:
        steps = results.plan([LOADS[f"{scenario}/nfs/dontcache"]])
        lines = boot("rust", steps)
        lines[0]["memory"] = 100 << 20
        lines[1] |= {"server_threads": 16, "cached_at_end": cached, "cached_after": cached}
        still(lines[1])
        accept(lines, steps, 1, RUST)

    of("random-64k", GONE)
    with pytest.raises(Failure, match="the DONTCACHE counter never moved"):
        of("random-64k", CACHED)
    with pytest.raises(Failure, match="the DONTCACHE counter never moved"):
        of("sequential", GONE)


@pytest.mark.parametrize(("number", "accepted"), [(1, False), (3, True)])
def test_only_a_direct_server_may_use_dontcache_besides(number: int, accepted: bool) -> None:
    lines = lines_of()
    lines[number]["samples"][1][results.COUNTED] = 12
    if accepted:
        accept(lines, STEPS, 1, RUST)
    else:
        with pytest.raises(Failure, match="counter moved without DONTCACHE"):
            accept(lines, STEPS, 1, RUST)


def test_blocked_threads_are_told_in_seconds_of_all_of_them() -> None:
    one = accept(lines_of(), STEPS, 1, RUST)[0]
    rows = [[seconds, *[0] * 7] for seconds in (0.0, 0.5, 1.5)]
    for row, blocked in zip(rows, (9, 4, 2), strict=True):
        row[results.BLOCKED] = blocked
    assert replace(one, samples=rows).blocked_seconds == pytest.approx(0.5 * 4 + 1.0 * 2)
    assert replace(one, samples=rows, server_threads=0).blocked_seconds is None
    assert any(metric.name == "blocked" for metric in summary.COSTS)


def test_who_is_blocked_is_in_state_d() -> None:
    from bench import sampler

    told = (b"88 (nfsd) D 2 0 0 0 -1", b"88 (nfsd) I 2 0 0 0 -1", b"88 (D) D) S 2 0 0 0 -1")
    assert [sampler.is_blocked(stat) for stat in told] == [True, False, False]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that could serve."""
    (tmp_path / "filesystems").write_text("nodev\tproc\n\txfs\nnodev\tnfs4\nnodev\tnfsd\n")
    (tmp_path / "nfsd").mkdir()
    (tmp_path / "nfsd/io_cache_write").write_text("0")
    (tmp_path / "tcp").write_text("  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A 0\n")
    monkeypatch.setattr(target, "FILE_SYSTEMS", tmp_path / "filesystems")
    monkeypatch.setattr(target, "NFSD", tmp_path / "nfsd")
    monkeypatch.setattr(target, "LOCALIO", tmp_path / "localio")
    monkeypatch.setattr(target, "SOCKETS", (tmp_path / "tcp", tmp_path / "tcp6"))
    monkeypatch.setattr(target, "may_administer", lambda: True)
    return tmp_path


def test_a_folder_can_be_exported(machine: Path) -> None:
    where = target.served(target.Target(machine, "/export", "xfs"))
    assert where.place == "nfs" and where.plan() == {"file_system": "nfs", "directory": str(machine)}


def test_a_machine_that_cannot_serve_says_why_in_a_line(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = target.Target(machine, "/export", "xfs")

    def refused(what: str) -> None:
        with pytest.raises(Failure, match=what) as caught:
            target.served(where)
        assert "\n" not in str(caught.value)

    (machine / "localio").write_text("Y\n")
    refused("would bypass a server of its own machine")
    (machine / "localio").write_text("N\n")
    (machine / "tcp").write_text("  sl  local_address\n   1: 00000000:0801 00000000:0000 0A 0\n")
    refused("an NFS server is running")
    monkeypatch.setattr(target, "may_administer", lambda: False)
    refused("run as root")
    where = target.Target(machine, "/dev/x", "device")
    refused("--place nfs exports a folder, /dev/x is a block device")
