# SPDX-License-Identifier: GPL-2.0
"""What is left in the report's folder, that it needs nothing else, and that its figures are of one mind."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_samples import accept, boot
from rust_writeback.bench import boots, catalogue, report, results, stats, summary

NAMES = ("sequential", "random-burst", "writers-4", "writers-32")
LOADS = catalogue.matrix([f"{name}/xfs" for name in NAMES])

Measurements = Sequence[results.Measurement]


def comparison(
    pairs: int = 3, rust: float = 1.0, loads: Sequence[catalogue.Load] = LOADS, names: Sequence[str] = ("c", "rust")
) -> list[results.Measurement]:
    """Measurements of boots whose host drifts, and whose Rust core is that much faster; direct only in the first."""
    measurements = []
    for pair in range(1, pairs + 1):
        steps = catalogue.keeping([load for load in loads if pair == 1 or load.mode != "direct"])
        for name in names:
            speed = (1 + 0.3 * pair) * (rust if name == "rust" else 1) * (1 + 0.01 * (pair % 2) * (name == "rust"))
            measurements += accept(boot(name, steps, speed), steps, pair, name)
    return measurements


def made(measurements: Measurements, **more: Any) -> report.Report:
    """A report of these measurements, with all that there can be in it."""
    groups, beside = summary.summarize(measurements, summary.FULL), summary.beside(measurements)
    words = ("date", "command", "kernel", "fio", "qemu", "accelerator", "memory", "places", "drives")
    setup = dict.fromkeys(words, "x") | {"revisions": ["<&>"], "pairs": 3, "cpus": 2, "variants": ["c", "rust"]}
    scenarios = {load.scenario.name: load.scenario for load in LOADS}.values()
    setup["scenarios"] = [{"name": s.name, "title": s.title, "text": s.text} for s in scenarios]
    return report.Report(setup | more, [{"pair": 1}], measurements, groups, beside, ["a note"], boots.Machine())


def test_the_page_has_all_and_opens_without_a_network(tmp_path: Path) -> None:
    report.write(tmp_path, made(comparison(rust=1.5)))
    text = (tmp_path / "index.html").read_text()
    assert not re.search(r"""(?:src|href)=["'](?!#)|@import|url\((?!#)|<script""", text)
    assert text.count("<svg") == text.count("<figure>") == 4 and text.count("<th>scenario</th>") == 3


def lose(measurements: Measurements, *lost: tuple[int, str]) -> list[results.Measurement]:
    return [m for m in measurements if (m.pair, m.variant) not in lost]


@pytest.mark.parametrize(
    ("groups_of", "names", "lost"),
    [
        (summary.summarize, ("c", "rust"), [(1, "c"), (3, "rust")]),
        (summary.summarize, ("c", "rust", "kernel"), [(2, "kernel"), (4, "c")]),
        (summary.beside, ("c", "rust"), [(1, "c"), (2, "rust"), (3, "c")]),
    ],
)
def test_a_ratio_is_that_of_the_figures_beside_it(
    groups_of: Callable[..., list[summary.Group]], names: Sequence[str], lost: list[tuple[int, str]]
) -> None:
    found = [replace(m, peak_dirty_pages=m.pair * m.pair * (m.mode == "buffered")) for m in comparison(4, 1.5, names=names)]
    seen = 0
    for cell in (cell for group in groups_of(lose(found, *lost), summary.FULL) for cell in group.cells.values()):
        for name, ratio in cell.ratios.items():
            assert ratio.estimate == pytest.approx(cell.values[name] / next(iter(cell.values.values())))
            assert {len(values) for values in cell.boots.values()} == {ratio.pairs}
            seen += 1
    assert seen > 50


def test_a_group_is_read_as_it_was_written() -> None:
    found = made(comparison())
    for group in (*found.groups, *found.beside):
        cells = {name: replace(cell, boots={}) for name, cell in group.cells.items()}
        assert report.group(report.summary(group)) == replace(group, cells=cells)


def test_without_a_whole_pair_there_are_figures_but_nothing_is_compared() -> None:
    alone = lose(comparison(4), (1, "c"), (2, "rust"), (3, "c"), (4, "rust"))
    cell = summary.summarize(alone)[0].cells["mb_per_s"]
    assert cell.values.keys() == {"c", "rust"} and cell.ratios == {}


def test_a_figure_that_should_be_0_shows_its_worst_boot_and_one_that_a_boot_lacks_is_omitted() -> None:
    made = [replace(m, counter_after=-m.pair * (m.variant == "c"), cached_pages=m.pair) for m in comparison()]
    cells = summary.summarize(made)[0].cells
    assert (cells["counter_after"].values, cells["counter_after"].ratios) == ({"c": 3, "rust": 0}, {})
    assert cells["cached_after"].values["c"] == pytest.approx(3 * results.PAGE / 1e6)
    lacking = [replace(m, counter_after=None if m.pair == 2 and m.variant == "c" else 0) for m in made]
    assert summary.summarize(lacking)[0].cells["counter_after"].values == {"rust": 0}


def test_verdicts_claim_no_more_than_was_shown() -> None:
    assert "0 of 62 comparisons stand out" in summary.verdicts(summary.summarize(comparison(rust=1.0)))[0]
    assert "more pairs" in summary.verdicts(summary.summarize(comparison(pairs=1)))[0]
    one_core = [m for m in comparison() if m.variant == "c"]
    assert summary.verdicts(summary.summarize(one_core)) == ["One variant alone has nothing to be compared with."]


def test_a_difference_has_to_pass_holm_to_stand_out() -> None:
    cells = {}
    for metric, p in zip(summary.FULL, (0.001, 0.04, 0.5, 0.6, 0.7), strict=False):
        ratio = stats.Ratio(1.1, 1.02 if p < 0.05 else 0.9, 1.2, 10, p)
        cells[metric.name] = summary.Cell(metric, {"c": 1.0, "rust": 1.1}, {"c": [1.0], "rust": [1.1]}, {"rust": ratio})
    lines = summary.verdicts([summary.Group("tree", "buffered", "xfs", "cloud", ("c", "rust"), cells)])
    assert "1 of 5 comparisons stand out" in lines[0] and "1 more have a 95 % interval" in lines[0]
    assert [line.partition(":")[0] for line in lines[1:]] == ["stands out"]
