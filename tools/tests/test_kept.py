# SPDX-License-Identifier: GPL-2.0
"""make results: pages of what was measured, and what the README has of them."""

import json
import shutil
from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.bench import kept, report, summary
from rust_writeback.check.lines import fingerprint
from rust_writeback.errors import Failure
from test_report import comparison, made

FILES = ("README.md", "tools/overlay.toml", "rust/wiring.patch")
FOLDERS = ("tools/results", "rust/kernel", "rust/helpers", "mm", "fs", "block")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the results are about: counted figures of the code that is there, and pages of the figures."""
    for name in FOLDERS:
        shutil.copytree(paths.PROJECT / name, tmp_path / name)
    for name in FILES:
        shutil.copy(paths.PROJECT / name, tmp_path / name)
    documents = {name: kept.read(name) for name in kept.COUNTED}
    for document in documents.values():
        document["setup"]["code"] = fingerprint(tmp_path)
    kept.publish(documents, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "more", "old"),
    [
        ("dropbehind_ring.c", "int more;\t/* A comment. */\n", True),
        ("dontcache_account.rs", "mod more {} // A comment.\n", True),
        ("wiring.patch", "+\tmore();\n", True),
        ("dropbehind_ring.c", "\n/*\n * Several\n *\n * lines.\n */\n", False),
        ("dontcache_account.rs", "\n// A comment.\n", False),
    ],
)
def test_a_line_of_code_makes_them_old_and_words_do_not(project: Path, name: str, more: str, old: bool) -> None:
    with (project / "mm" / name).open("a") as file:
        file.write(more)
    found = kept.stale(project)
    assert [line.split(" is of ")[0] for line in found] == old * [f"tools/results/{name}.json" for name in kept.COUNTED]
    if old:
        assert found[1].endswith(f"here is {fingerprint(project)}; run: make micro, then make results ARGS=micro")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("README.md", "| four logs", "| five logs"),
        ("README.md", "| xfs, 1 MiB |", "| xfs, 2 MiB |"),
        *((f"tools/results/{name}.md", "# ", "## ") for name in kept.PAGES),
        (kept.PICTURE, "<!-- ", "<!-- 0"),
    ],
)
def test_a_page_that_differs_from_its_figures_is_reported_and_rendered(project: Path, name: str, old: str, new: str) -> None:
    file = project / name
    assert old in (text := file.read_text())
    file.write_text(text.replace(old, new, 1))
    assert kept.stale(project) == [f"{name} differs from the figures in tools/results; run: make results"]
    kept.publish({}, project)
    assert kept.stale(project) == [] and file.read_text() == text


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A benchmark that is the only part of the page, as the report of its boots has it."""
    part = kept.Part("A drive", "bench", "make bench", "a drive", {"sequential/xfs": "in a row"})
    monkeypatch.setattr(kept, "LOAD", [part])
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    report.write(tmp_path / "bench", made(comparison(10), revisions=["0123456789ab"], code=fingerprint(), host_cpu="a CPU"))
    return tmp_path / "bench" / "results.json"


def test_a_benchmark_becomes_figures_of_the_page(bench: Path) -> None:
    document = kept.collect_load()
    ((load,), (part,)) = kept.loads(document), document["parts"]
    assert (part["setup"]["revision"], part["setup"]["command"], load["load"]) == ("0123456789ab", "make bench", "in a row")
    found = {(group["scenario"], group["mode"]): group["figures"] for group in json.loads(bench.read_text())["beside"]}
    for core in ("c", "rust"):
        ratio = found["sequential", core][summary.MAIN]["ratios"]["dontcache"]
        assert load[core]["dontcache"] == [ratio["estimate"], ratio["low"], ratio["high"]]
        assert "direct" not in load[core], "it ran in one pair"
    assert "DONTCACHE beside buffered:\n\n| scenario |" in kept.load_page(document)


@pytest.mark.parametrize(
    ("pairs", "form", "said"),
    [
        (9, report.FORMAT, "bench has no 10 pairs of sequential/xfs on both cores; run: make bench"),
        (10, 3, "bench was written by another version"),
    ],
)
def test_a_benchmark_that_does_not_suffice_is_refused(bench: Path, pairs: int, form: int, said: str) -> None:
    text = json.dumps(json.loads(bench.read_text()) | {"format": form})
    assert '"pairs": 10' in text
    bench.write_text(text.replace('"pairs": 10', f'"pairs": {pairs}'))
    with pytest.raises(Failure, match=said):
        kept.collect_load()


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ({"revisions": ["0123456789ab", "ba9876543210"], "code": "x"}, "no result of one revision"),
        ({}, "no result of one revision"),
        ({"revision": "0123456789ab+changes", "code": "x"}, "uncommitted changes"),
        ({"revision": "0123456789ab", "code": "x"}, "the code has changed since"),
    ],
)
def test_figures_with_uncommitted_changes_are_refused(tmp_path: Path, setup: dict[str, object], said: str) -> None:
    result = tmp_path / "results.json"
    result.write_text(json.dumps({"setup": setup}))
    with pytest.raises(Failure, match=said):
        kept.measured(result, "make run")
