# SPDX-License-Identifier: GPL-2.0
"""What is left in the report's folder, and that it needs nothing else."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from bench_samples import boot, variant
from rust_writeback.bench import catalogue, plots, report, results, summary, table

FOLDER = Path(__file__).parents[1] / "fio"
LOADS = catalogue.select("xfs", catalogue.ALL_MODES, catalogue.SHORT, FOLDER)
COUNTING = catalogue.select("xfs", ["dontcache"], ["depth-1-counts"], FOLDER)

DRAWN = set(report.CAPTIONS) - {"waits"}
"""What there is to draw where no load counts."""


def comparison(
    pairs: int = 3, rust: float = 1.0, loads: Sequence[catalogue.Load] = LOADS
) -> list[results.Measurement]:
    """Measurements of boots whose host drifts, and whose Rust core is that much faster."""
    measurements = []
    for pair in range(1, pairs + 1):
        steps = results.plan([load for load in loads if pair == 1 or load.mode != "direct"])
        for core in ("c", "rust"):
            speed = (1 + 0.3 * pair) * (rust if core == "rust" else 1) * (1 + 0.01 * (pair % 2) * (core == "rust"))
            measurements += results.accept(boot(core, steps, speed), steps, pair, variant(core))
    return measurements


def setup() -> dict[str, Any]:
    scenarios = {load.scenario.name: load.scenario for load in LOADS}.values()
    return {
        "date": "2026-01-01 00:00:00 UTC",
        "command": "make run",
        "revision": "<&>",
        "pairs": 3,
        "kernel": "7.3.4",
        "fio": "fio-3.39",
        "qemu": "10.0.13",
        "accelerator": "tcg",
        "cpus": 2,
        "memory": "192M",
        "places": "xfs",
        "variants": ["c", "rust"],
        "drive": "an emulated NVMe drive limited to 144MiB/s",
        "scenarios": [{"name": s.name, "title": s.title, "text": s.text} for s in scenarios],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report")
    measurements = comparison(rust=1.5)
    report.write(path, setup(), [{"pair": 1}], measurements, summary.summarize(measurements))
    return path


class Page(HTMLParser):
    """Collects what a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href") and value and not value.startswith("#"):
                self.fetched.append(value)


def test_the_page_opens_without_a_network(folder: Path) -> None:
    text = (folder / "index.html").read_text()
    page = Page()
    page.feed(text)
    assert page.fetched == []
    assert not re.search(r"@import|url\((?!#)", text)
    assert page.tags.count("svg") == len(DRAWN)
    assert "script" not in page.tags
    assert "&lt;&amp;&gt;" in text


def test_the_plots_are_whole_svg(folder: Path) -> None:
    assert {path.stem for path in folder.glob("*.svg")} == DRAWN
    for name in DRAWN:
        root = xml.etree.ElementTree.parse(folder / f"{name}.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_rates_are_taken_over_windows() -> None:
    one = replace(comparison(1)[0], samples=[[n / 5, *[0] * 6, 100 * n, 50_000 * n, 0] for n in range(11)])
    seconds, switches = plots.rate(results.SWITCHES)(one)
    assert seconds == pytest.approx([0.3, 0.9, 1.5]) and switches == pytest.approx([500] * 3)
    assert plots.rate(results.JOB_CPU, unit=1e6)(one)[1] == pytest.approx([0.25] * 3)


def test_how_long_bios_wait_is_drawn_where_it_was_counted(tmp_path: Path) -> None:
    both = [*comparison(1), *comparison(1, loads=COUNTING)]
    report.write(tmp_path, setup(), [], both, summary.summarize(both, summary.FULL))
    page = (tmp_path / "index.html").read_text()
    assert page.count("<svg") == len(report.CAPTIONS)
    figure = page[page.index("<h2>How long a bio waits") :]
    figure = figure[: figure.index("</figure>")]
    assert "wait for the end, ms" in figure and "depth-1-counts" in figure and "writers-4" not in figure


def test_a_plot_of_nothing_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "workers.svg").touch()
    blind = [replace(m, used={"context_switches": 1}, device={}) for m in comparison(1) if m.mode == "buffered"]
    report.write(tmp_path, setup(), [], blind, summary.summarize(blind))
    drawn = {path.stem for path in tmp_path.glob("*.svg")}
    assert set(report.CAPTIONS) - drawn == {"workers", "throughput", "counter", "waits"}
    assert (tmp_path / "index.html").read_text().count("<figure>") == len(drawn)


def test_the_json_holds_every_value(folder: Path) -> None:
    document = json.loads((folder / "results.json").read_text())
    assert len(document["measurements"]) == 6 * 8 + 2 * 4
    first = document["measurements"][0]
    assert sum(first["latency_bins"].values()) == first["ios"]
    assert first["samples"]
    row = next(r for r in document["summary"] if (r["scenario"], r["mode"]) == ("random", "dontcache"))
    ratio = row["figures"]["mb_per_s"]["ratios"]["rust"]
    assert ratio["estimate"] == pytest.approx(1.5, abs=0.02)
    assert ratio["verdict"] == "Rust higher"
    direct = next(r for r in document["summary"] if r["mode"] == "direct")
    assert direct["figures"]["mb_per_s"]["ratios"]["rust"]["low"] is None


def test_the_markdown_is_one_table(folder: Path) -> None:
    lines = [line for line in (folder / "report.md").read_text().splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert len(lines) == 2 + 4 * 3 * 3


def test_nothing_half_written_is_left(folder: Path) -> None:
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_ratios_are_taken_within_the_pairs() -> None:
    groups = summary.summarize(comparison(rust=1.0))
    cell = next(g for g in groups if (g.scenario, g.mode) == ("sequential", "buffered")).cell("mb_per_s")
    ratio = cell.ratios["rust"]
    assert not ratio.shown
    assert ratio.high / ratio.low < 1.1
    assert max(cell.boots["c"]) / min(cell.boots["c"]) > 1.3


def test_percentiles_of_a_core_come_from_one_histogram() -> None:
    measurements = comparison()
    chosen = [m for m in measurements if (m.scenario, m.mode, m.variant) == ("random", "buffered", "c")]
    group = next(g for g in summary.summarize(measurements) if (g.scenario, g.mode) == ("random", "buffered"))
    assert group.cell("p50").values["c"] * 1e6 in {key for m in chosen for key in m.outcome.latency}


def test_boots_without_a_partner_are_noticed() -> None:
    measurements = [m for m in comparison() if (m.pair, m.variant) != (2, "rust")]
    with pytest.raises(ValueError, match="not paired"):
        summary.summarize(measurements)


def test_verdicts_say_what_was_not_shown() -> None:
    same = summary.verdicts(summary.summarize(comparison(rust=1.0)))
    assert "no difference shown in 40 of 40" in same[0]
    faster = summary.verdicts(summary.summarize(comparison(rust=1.5)))
    assert any("sequential, dontcache, bandwidth: Rust higher" in line for line in faster)
    assert "more pairs" in summary.verdicts(summary.summarize(comparison(pairs=1)))[0]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1234.4, "1234"), (45.67, "45.7"), (3.456, "3.46"), (0.0345, "0.035"), (0.00312, "0.0031")]
)
def test_numbers_have_the_digits_that_mean_something(value: float, text: str) -> None:
    assert table.number(value) == text
