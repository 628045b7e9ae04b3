# SPDX-License-Identifier: GPL-2.0
"""The benchmark through an NFS server: what proves a server's mode, and why there is no server."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from bench_samples import accept, boot, steps
from rust_writeback import paths
from rust_writeback.bench import boots, catalogue, results, target
from rust_writeback.errors import Failure
from rust_writeback.vm import emulated
from rust_writeback.vm.options import NvmeOptions, VmOptions

STEPS = steps(*(f"sequential/nfs/{mode}" for mode in ("buffered", "dontcache", "direct")))


def served(planned: list[catalogue.Load], *cached: int) -> list[dict[str, Any]]:
    """A boot in which 16 threads served, and so many pages stayed cached of each load."""
    lines = boot("rust", planned)
    for line, pages in zip(lines[1:-1], cached, strict=True):
        stays = {"large.data": pages}
        line |= {"server_threads": 16, "cached_at_end": stays, "cached_after": stays}
    return lines


def test_a_direct_client_is_direct_in_each_mode_of_the_server() -> None:
    for step in STEPS:
        assert step.plan()["environment"] == {"BENCH_DIRECT": "1", "BENCH_UNCACHED": "0"}


@pytest.mark.parametrize(
    ("scenario", "cached", "accepted"), [("random-64k", 0, True), ("random-64k", 40000, False), ("sequential", 0, False)]
)
def test_pages_of_the_server_prove_its_mode_if_each_write_was_synced(scenario: str, cached: int, accepted: bool) -> None:
    planned = steps(f"{scenario}/nfs/dontcache")
    lines = served(planned, cached)
    lines[1]["dontcache_round"] = 0
    for row in lines[1]["samples"]:
        row[results.COUNTED] = 0
    with contextlib.nullcontext() if accepted else pytest.raises(Failure, match="the DONTCACHE counter never moved"):
        accept(lines, planned, 1, "rust")


def test_only_a_direct_server_may_use_dontcache_besides() -> None:
    lines = served(STEPS, 40000, 0, 0)
    lines[3]["samples"][1][results.COUNTED] = 12
    accept(lines, STEPS, 1, "rust")
    lines[1]["samples"][1][results.COUNTED] = 12
    with pytest.raises(Failure, match="counter moved without DONTCACHE"):
        accept(lines, STEPS, 1, "rust")


STOPS = """
(until grep -qsx fio /proc/[0-9]*/comm; do sleep 0.2; done; sleep 3; echo 0 >/proc/fs/nfsd/threads) &
cd /share && exec python3 -B -m bench "$1"
"""
"""Three seconds after fio began it writes: a load that had ended by then would be no refused step, and the test red."""


@pytest.mark.skipif(not paths.BZIMAGE.exists(), reason="build/bzImage is not there; make kernel builds it")
def test_a_stopped_server_is_reported_and_blocks_no_client() -> None:
    """Once it is gone a client waits for it, and so would fio, which then cannot be killed."""
    plan = {"steps": [step.plan() for step in STEPS[:2]], "interval": 0.05, "file_system": "nfs"}
    drive = VmOptions(mem="512M", nvme=NvmeOptions(bps="10M"), share=boots.DRIVER)
    done = emulated.run(drive, ["sh", "-c", STOPS, "bench", json.dumps(plan)], again=emulated.from_scratch)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["kind"] for line in told] == ["guest", "refused", "refused", "end"]
    assert all("the NFS server was stopped" in line["reason"] for line in told[1:3])
    assert done.status == 1 and not done.complaint


LISTENS = "  sl  local_address\n   1: 00000000:0801 00000000:0000 0A 0\n"


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        ("", "", ""),
        ("LOCALIO", "Y\n", "would bypass a server of its own machine"),
        ("tcp", LISTENS, "an NFS server is running"),
        ("FILE_SYSTEMS", "nodev\tnfsd\n", "lacks NFS"),
    ],
)
def test_a_machine_without_an_nfs_server_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: str, what: str
) -> None:
    for name in ("FILE_SYSTEMS", "NFSD", "LOCALIO"):
        monkeypatch.setattr(target, name, tmp_path / name)
    monkeypatch.setattr(target, "SOCKETS", (tmp_path / "tcp", tmp_path / "tcp6"))
    monkeypatch.setattr(target, "may_administer", lambda: True)
    target.NFSD.mkdir()
    (target.NFSD / "io_cache_write").write_text("0")
    target.FILE_SYSTEMS.write_text("nodev\tproc\n\txfs\nnodev\tnfs4\nnodev\tnfsd\n")
    (tmp_path / "tcp").write_text("  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A 0\n")
    if file:
        (tmp_path / file).write_text(content)
    where = target.Target(tmp_path, "/export", "xfs")
    with pytest.raises(Failure, match=what) if file else contextlib.nullcontext():
        assert target.served(where).plan() == {"file_system": "nfs", "directory": str(tmp_path)}
