# SPDX-License-Identifier: GPL-2.0
"""make results: pages of what was measured, and what the README has of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rust_writeback import paths
from rust_writeback.bench import kept, price_page
from rust_writeback.errors import Failure
from rust_writeback.vm.emulated import VmFailure

NAMES = ("README.md", "tools/overlay.toml", "tools/results")
FOLDERS = ("rust/kernel", "rust/helpers", "mm", "fs", "block")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the results are about."""
    for name in NAMES + FOLDERS:
        source = paths.PROJECT / name
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    shutil.copy(paths.PROJECT / "rust" / "wiring.patch", tmp_path / "rust")
    return tmp_path


def fresh(project: Path) -> None:
    """Make all pages be of the code that is there."""
    now = kept.code(project)
    micro = project / "tools" / "results" / "micro.md"
    micro.write_text(kept.CODE.sub("", micro.read_text()) + f"code {now}\n")
    counted = project / "tools" / "results" / "price.json"
    document = json.loads(counted.read_text())
    document["setup"]["code"] = now
    counted.write_text(json.dumps(document))
    counted.with_suffix(".md").write_text(price_page.page(document))
    page = (project / "tools" / "results" / "load.md").read_text()
    (project / "tools" / "results" / "beside.svg").write_text(f"<!-- {kept.figures(page)} -->\n<svg/>")
    readme = project / "README.md"
    readme.write_text(price_page.with_part(kept.with_part(readme.read_text(), page), document))


def test_pages_of_the_code_are_fresh(project: Path) -> None:
    fresh(project)
    assert kept.stale(project) == []


def test_a_line_of_code_makes_them_old(project: Path) -> None:
    fresh(project)
    with (project / "fs" / "dontcache_wb.c").open("a") as file:
        file.write("int more;\n")
    assert [line.partition(" is of ")[0] for line in kept.stale(project)] == [f"tools/results/{name}.md" for name in kept.AGED]


def test_a_hook_makes_them_old(project: Path) -> None:
    before = kept.code(project)
    with (project / "mm" / "wiring.patch").open("a") as file:
        file.write("+\tmore();\n")
    assert kept.code(project) != before


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("fs/dontcache_wb.c", "/* A comment. */\n"),
        ("mm/dontcache_counter.rs", "// A comment.\n"),
        ("rust/kernel/writeback/pace.rs", "\n#[cfg(all(test, not(loom)))]\nmod more {}\n"),
        ("mm/dontcache.rst", "A sentence.\n"),
    ],
)
def test_words_and_tests_do_not(project: Path, name: str, more: str) -> None:
    before = kept.code(project)
    with (project / name).open("a") as file:
        file.write(more)
    assert kept.code(project) == before


def test_another_table_in_the_readme_is_told(project: Path) -> None:
    fresh(project)
    readme = project / "README.md"
    readme.write_text(readme.read_text().replace("| four logs", "| five logs"))
    assert kept.stale(project) == ["the README's table differs from tools/results/load.md; run: make results"]


def test_another_price_in_the_readme_is_told(project: Path) -> None:
    fresh(project)
    readme = project / "README.md"
    readme.write_text(readme.read_text().replace("| xfs, 1 MiB |", "| xfs, 2 MiB |"))
    assert kept.stale(project) == ["the README's first table differs from tools/results/price.json; run: make price"]


def test_a_page_of_other_prices_is_told(project: Path) -> None:
    fresh(project)
    with (project / "tools" / "results" / "price.md").open("a") as file:
        file.write("More.\n")
    assert kept.stale(project) == ["tools/results/price.md differs from price.json; run: make price"]


def test_a_picture_of_other_figures_is_told(project: Path) -> None:
    fresh(project)
    (project / "tools" / "results" / "beside.svg").write_text("<!-- 0123456789ab -->\n<svg/>")
    assert kept.stale(project) == [
        "tools/results/beside.svg has other figures than tools/results/load.md; run: make results"
    ]


def test_a_readme_without_marks_is_told(project: Path) -> None:
    page = (project / "tools" / "results" / "load.md").read_text()
    with pytest.raises(Failure, match="lacks the marks"):
        kept.with_part("# A page\n", page)


def test_a_load_that_is_missing_is_told() -> None:
    page = (paths.PROJECT / "tools" / "results" / "load.md").read_text()
    without = "\n".join(line for line in page.splitlines() if not line.startswith("| append | Rust"))
    with pytest.raises(Failure, match="load.md has no append of both cores in 'make run'"):
        kept.readme_rows(without)


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ({"revisions": ["0123456789ab", "ba9876543210"]}, "no result of one revision"),
        ({}, "no result of one revision"),
        ({"revision": "0123456789ab+changes"}, "uncommitted changes"),
        ({"revision": "000000000000"}, "there is no revision 000000000000"),
    ],
)
def test_what_cannot_be_repeated_is_refused(tmp_path: Path, setup: dict[str, object], said: str) -> None:
    result = tmp_path / "results.json"
    result.write_text(json.dumps({"setup": setup}))
    with pytest.raises(Failure, match=said):
        kept.measured(result, "make run")


def test_the_picture_has_a_row_for_each_load() -> None:
    page = (paths.PROJECT / "tools" / "results" / "load.md").read_text()
    svg = kept.picture(page)
    assert kept.figures(page) in svg.partition("\n")[0]
    assert all(row.load in svg for row in kept.readme_rows(page))


def test_a_page_has_the_second_half_and_direct_writes_where_they_were_run() -> None:
    """Pages of before had neither, and are read all the same."""
    header = ["scenario", "core", *["MB/s"] * 3, "ratio second half", "O_DIRECT ratio", "ratio of start"]
    lines = []
    for part in kept.LOAD:
        lines += ["", f"## {part.heading}", "", kept._markdown(header, [], 2)]
        for name in part.loads:
            direct = "" if name == "append" else "0.50 (0.40-0.60)"
            lines += [f"| {name} | {core} | 9 | 9 | 9 | 1.50 (1.40-1.60) | {direct} | 7.00 (6.00-8.00) |" for core in ("C", "Rust")]
    rows = kept.readme_rows("\n".join(lines))
    assert {(row.c, row.rust) for row in rows} == {("1.50 (1.40-1.60)",) * 2}
    assert {row.load for row in rows if row.direct != "0.50 (0.40-0.60)"} == {"four logs that are synced"}
    old = kept.readme_rows((paths.PROJECT / "tools" / "results" / "load.md").read_text())
    assert [row.load for row in old] == [row.load for row in rows]
    assert {row.direct for row in old} == {"-"}
    # What is paced has no bandwidth.
    assert not any("each millisecond" in row.load for row in rows)


def test_a_page_has_its_tables_without_ratios_of_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report.md").write_text(
        f"{kept.BESIDE}:\n\n| load | MB/s |\n| --- | ---: |\n| one | 1 |\n| Rust/C | 2 |\n\nObtained by `x`: 2 pairs\n"
    )
    setup = {"date": "2026-11-26 01:00", "revision": "0123456789ab"}
    monkeypatch.setattr(kept, "measured", lambda path, command: {"setup": setup})
    page = kept.campaigns("A page", [kept.Part("A part", tmp_path, "make bench")])
    assert "| load | MB/s |\n| --- | ---: |\n| one | 1 |\n" in page and "Rust/C" not in page and "2 pairs" in page
    with pytest.raises(Failure, match="has no table 'Another'; run: make bench"):
        kept.campaigns("A page", [kept.Part("A part", tmp_path, "make bench", ("Another",))])


def test_an_unknown_page_is_told() -> None:
    with pytest.raises(Failure, match="more: no such page; there are load, xfs, ext4, micro, conformance"):
        kept.main(["load", "more"])


def test_a_console_stays_where_it_is() -> None:
    failure = VmFailure("oops", "the guest oopsed: BUG", paths.LOG / "vm.log")
    assert kept._verdict({"verdict": "oops", "figures": str(failure)}) == ["oops", "the guest oopsed: BUG"]


def test_a_place_that_a_core_did_not_reach_is_not_kept() -> None:
    rows = [{"results": {"c": {"each": {"xfs": ""}}, "rust": {"each": {"xfs": "1 page left", "ext4": ""}}}}]
    assert kept.where(rows) == [["xfs", "kept", "1 page left"], ["ext4", "not run", "kept"]]
