# SPDX-License-Identifier: GPL-2.0
"""Our own program does the loads that its files promise, and says so in fio's words."""

import json
import subprocess
from pathlib import Path

import pytest
from rust_writeback.vm import images
from rust_writeback.bench import jobs

TREE = {"files=4620": "files=300"}
COMPACTION = {"numjobs=4": "numjobs=3", "files=32": "files=2", "file_size=64m": "file_size=1m"}


@pytest.fixture(scope="module")
def program() -> Path:
    """The program, as the project compiles it."""
    images.ensure_program(images.LOAD_SOURCE, images.LOAD)
    return images.LOAD


def scenario(name: str, smaller: dict[str, str], folder: Path) -> jobs.Scenario:
    """One of our files with less to do."""
    text = (jobs.FOLDER / f"{name}.ini").read_text()
    for much, little in smaller.items():
        assert much in text
        text = text.replace(much, little)
    path = folder / f"{name}.ini"
    path.write_text(text)
    return jobs.read(path)


def run(program: Path, load: jobs.Scenario, folder: Path) -> tuple[str, list[jobs.Outcome]]:
    """What it prints where the guest's driver runs it, and what that says, which has to be what it was told to do."""
    for name, size in load.needs.items():
        (folder / name).write_bytes(bytes(size))
    name, *words = (word.replace("${BENCH_DIRECTORY}", str(folder)) for word in (*load.program, "buffered"))
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
    assert (name, done.returncode, done.stderr) == ("load", 0, "")
    return done.stdout, jobs.parse(done.stdout, 0, 0, load, "buffered")


def test_a_tree_is_of_new_files_of_all_sizes(program: Path, tmp_path: Path) -> None:
    load, folder = scenario("tree", TREE, tmp_path), tmp_path / "tree"
    folder.mkdir()
    _, (outcome,) = run(program, load, folder)
    sizes = jobs.file_sizes(300, 4 << 10, 1 << 20)
    assert [(folder / f"tree.0.{number}").stat().st_size for number in range(300)] == sizes
    assert len(list(folder.iterdir())) == load.files == 300
    assert (outcome.bytes, outcome.ios) == (sum(sizes), sum(-(-size // (64 << 10)) for size in sizes))
    assert outcome.syncs == {}


def test_tables_are_written_synced_and_renamed_beside_readers(program: Path, disk: Path, tmp_path: Path) -> None:
    load = scenario("compaction", COMPACTION, tmp_path)
    printed, (writers, readers) = run(program, load, disk)
    tables = {f"table.{writer}.{number}" for writer in range(3) for number in range(2)}
    assert {path.name for path in disk.iterdir()} == tables | {"reader.0", "reader.1"}
    assert {(disk / name).stat().st_size for name in tables} == {8 << 20}
    assert (writers.bytes, writers.ios) == (6 * (8 << 20), 6 * 8)
    # A sync for each file, which is part of the time until all is durable.
    assert writers.syncs.total() == 6
    assert writers.durable_ms + 1 >= writers.runtime_ms > 0
    assert readers.bytes == readers.ios * 4096
    # No job can have waited longer than it ran, each of its requests after the one before.
    for job in json.loads(printed[printed.index("{\n") :])["jobs"]:
        traffic = job["read" if job["jobname"] == "readers" else "write"]
        bins = [*traffic["lat_ns"]["bins"].items(), *job["sync"]["lat_ns"]["bins"].items()]
        assert 0 < sum(int(ns) * count for ns, count in bins) / 1e6 < max(job["durable"], traffic["runtime"] + 1)


@pytest.mark.parametrize(
    ("name", "words"),
    [("tree.0.1", "tree DIR 3 4096 8192 4096 buffered"), ("new.0", "compaction DIR 1 1 4096 4096 1 4096 buffered")],
)
def test_files_that_are_there_already_are_not_written_over(program: Path, tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / name).write_text("somebody's")
    (tmp_path / "reader.0").write_bytes(bytes(8192))
    given = words.replace("DIR", str(tmp_path)).split()
    done = subprocess.run([program, *given], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (1, f"load: {tmp_path / name}: File exists\n")
    assert (tmp_path / name).read_text() == "somebody's"


def test_memory_that_is_touched_is_in_use(program: Path) -> None:
    with subprocess.Popen([program, "touch", str(40 << 20)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "touched\n"
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.kill()
    assert 40 << 10 <= int(status.partition("VmRSS:")[2].split()[0]) < 80 << 10
