# SPDX-License-Identifier: GPL-2.0
"""What is left in the report's folder, that it needs nothing else, and that its figures are of one mind."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest
from bench_samples import accept, boot
from rust_writeback.bench import catalogue, full, plots, report, results, stats, summary, table

NAMES = ("sequential", "random-burst", "writers-4", "writers-32")
LOADS = catalogue.select("xfs", catalogue.ALL_MODES, NAMES)

Measurements = Sequence[results.Measurement]


def slower(m: results.Measurement, factor: float) -> results.Measurement:
    """The same in so many times the time, from its first byte on."""
    outcome = replace(m.outcome, durable_ms=m.outcome.durable_ms * factor)
    return replace(m, outcome=outcome, half_ms=m.half_ms and m.half_ms * factor)


def comparison(
    pairs: int = 3, rust: float = 1.0, loads: Sequence[catalogue.Load] = LOADS, names: Sequence[str] = ("c", "rust")
) -> list[results.Measurement]:
    """Measurements of boots whose host drifts, and whose Rust core is that much faster; direct only in the first."""
    measurements = []
    for pair in range(1, pairs + 1):
        steps = results.plan([load for load in loads if pair == 1 or load.mode != "direct"])
        for name in names:
            speed = (1 + 0.3 * pair) * (rust if name == "rust" else 1) * (1 + 0.01 * (pair % 2) * (name == "rust"))
            measurements += accept(boot(name, steps, speed), steps, pair, name)
    return measurements


def setup() -> dict[str, Any]:
    scenarios = {load.scenario.name: load.scenario for load in LOADS}.values()
    return {
        "date": "2026-01-01 00:00:00 UTC",
        "command": "make run",
        "revisions": ["<&>"],
        "pairs": 3,
        "kernel": "7.3.4",
        "fio": "fio-3.39",
        "qemu": "10.0.13",
        "accelerator": "tcg",
        "cpus": 2,
        "memory": "1G",
        "places": "xfs",
        "variants": ["c", "rust"],
        "drives": "stream (112MiB/s)",
        "scenarios": [{"name": s.name, "title": s.title, "text": s.text} for s in scenarios],
    }


def made(
    measurements: Measurements, boots: Sequence[dict[str, Any]] = ({"pair": 1},), more: dict[str, Any] | None = None
) -> report.Report:
    """A report of these measurements, with all that there can be in it."""
    groups, beside = summary.summarize(measurements, summary.FULL), summary.beside(measurements)
    tables = full.tables_of(groups, beside)
    whole = setup() | (more or {})
    return report.Report(whole, boots, measurements, groups, beside, tables, ["a note"], report.Words())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report")
    report.write(path, made(comparison(rust=1.5)))
    return path


def test_the_page_opens_without_a_network(folder: Path) -> None:
    text = (folder / "index.html").read_text()
    assert not re.search(r"""(?:src|href)=["'](?!#)|@import|url\((?!#)|<script""", text)
    assert text.count("<svg") == len(report.CAPTIONS)


def test_rates_are_taken_over_windows() -> None:
    one = replace(comparison(1)[0], samples=[[n / 5, *[0] * 5, 100 * n, 50_000 * n] for n in range(11)])
    seconds, read = plots.rate(results.READ)(one)
    assert seconds == pytest.approx([0.3, 0.9, 1.5]) and read == pytest.approx([500] * 3)
    assert plots.rate(results.WRITTEN, unit=1e6)(one)[1] == pytest.approx([0.25] * 3)


def test_a_plot_of_nothing_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "throughput.svg").touch()
    blind = [replace(m, used={"context_switches": 1}, device={}) for m in comparison(1) if m.mode == "buffered"]
    report.write(tmp_path, made(blind))
    drawn = {path.stem for path in tmp_path.glob("*.svg")}
    assert set(report.CAPTIONS) - drawn == {"throughput", "counter", "beside"}
    assert (tmp_path / "index.html").read_text().count("<figure>") == len(drawn)
    # And so is a column of which nothing is known, and a table.
    markdown = (tmp_path / "report.md").read_text()
    assert "CPU of workers" not in markdown and "device/written" not in markdown and "beside" not in markdown


def test_the_json_holds_every_value(folder: Path) -> None:
    document = json.loads((folder / "results.json").read_text())
    assert document["format"] == report.FORMAT == 4
    assert len(document["measurements"]) == 6 * 8 + 2 * 4
    first = document["measurements"][0]
    assert sum(first["latency_bins"].values()) == first["ios"]
    assert first["mb_per_s"] == pytest.approx(first["bytes"] / 1e3 / first["durable_ms"])
    assert first["handed_over_mb_per_s"] == pytest.approx(first["bytes"] / 1e3 / first["runtime_ms"])
    row = next(r for r in document["summary"] if (r["scenario"], r["mode"]) == ("random-burst", "dontcache"))
    ratio = row["figures"]["mb_per_s"]["ratios"]["rust"]
    assert (ratio["kind"], ratio["pairs"], row["drive"]) == ("ratio", 3, "cloud (125MiB/s, 3000 requests/s)")
    assert ratio["estimate"] == pytest.approx(1.5, abs=0.02)
    assert ratio["verdict"] == "Rust higher" and ratio["p"] < 0.05
    direct = next(r for r in document["summary"] if r["mode"] == "direct")
    assert direct["figures"]["mb_per_s"]["ratios"]["rust"]["low"] is None
    assert direct["figures"]["peak_dirty"]["ratios"]["rust"]["kind"] == "difference"
    beside = next(r for r in document["beside"] if (r["scenario"], r["mode"]) == ("random-burst", "rust"))
    assert beside["figures"][summary.MAIN]["ratios"].keys() == {"dontcache"}
    assert len(document["beside"]) == len(NAMES) * 2
    assert document["verdicts"][-1] == "a note"


def test_a_row_says_where_it_was_measured_if_there_are_several_places() -> None:
    one = table.Table("", summary.summarize(comparison(1)))
    assert one.names() == ["scenario", "drive", "mode", "core"]
    assert {row[1] for row in one.rows()} == {"cloud", "stream"}
    alike = [load for load in LOADS if load.scenario.name == "random-burst"]
    assert table.Table("", summary.summarize(comparison(1, loads=alike))).names() == ["scenario", "mode", "core"]
    both = [*alike, *(replace(load, place="ext4") for load in alike)]
    measurements = comparison(1, loads=alike) + comparison(1, loads=both[len(alike) :])
    assert table.Table("", summary.summarize(measurements)).names() == ["scenario", "place", "mode", "core"]


def test_the_table_beside_has_both_figures_and_their_ratio() -> None:
    measurements = [slower(m, {"dontcache": 2, "direct": 4}.get(m.mode, 1)) for m in comparison()]
    groups = summary.beside(measurements)
    beside = table.Beside("", groups, summary.BESIDE)
    assert beside.names() == ["scenario", "drive", "core"]
    figures, ratios = [f"{mode}, MB/s" for mode in ("buffered", "DONTCACHE", "O_DIRECT")], ["ratio second half"]
    assert beside.header()[3:9] == [*figures, *ratios, "O_DIRECT ratio", "ratio of start"]
    rows = beside.rows()
    assert [row[:3] for row in rows[:2]] == [["sequential", "stream", "C"], ["sequential", "stream", "Rust"]]
    for row in rows:
        assert float(row[4]) / float(row[3]) == pytest.approx(0.5, abs=0.01)
        assert row[6:8] == ["0.500 (0.500-0.500)", "0.25 (one pair)"]
    # A ratio stands beside figures here: none of its rows is a row of ratios.
    assert not any(table.is_ratio(row, len(beside.names())) for row in rows)


def test_a_load_of_one_mode_has_nothing_beside_it() -> None:
    buffered = [m for m in comparison() if m.mode == "buffered"]
    assert summary.beside(buffered) == []
    assert full.tables_of(summary.summarize(buffered), [])[0].heading == "What the loads did"
    only_c = [m for m in comparison() if m.mode == "buffered" or m.variant == "c"]
    assert {group.mode for group in summary.beside(only_c)} == {"c"}
    # A mode that could not be run leaves the other one its pairs.
    alone = summary.beside([m for m in comparison() if m.mode != "direct"])
    assert alone == [group for group in summary.beside(comparison()) if group.variants == ("buffered", "dontcache")]
    beside = table.Beside("", alone, summary.BESIDE)
    assert {(row[5], row[7]) for row in beside.rows()} == {("", "")}


def test_ratios_are_taken_within_the_pairs() -> None:
    groups = summary.summarize(comparison(rust=1.0))
    cell = next(g for g in groups if (g.scenario, g.mode) == ("sequential", "buffered")).cell("mb_per_s")
    ratio = cell.ratios["rust"]
    assert not ratio.shown
    assert ratio.high / ratio.low < 1.1
    assert max(cell.boots["c"]) / min(cell.boots["c"]) > 1.3


def scattered(names: Sequence[str] = ("c", "rust"), pairs: int = 4) -> list[results.Measurement]:
    """Measurements in which no figure of a boot is like that of another one, and some are zero."""
    found = []
    for number, m in enumerate(comparison(pairs, names=names)):
        factor = 1 + (number * 37 % 101) / 100
        outcome = replace(
            m.outcome,
            durable_ms=m.outcome.durable_ms * factor,
            latency=Counter({round(ns * factor): count for ns, count in m.outcome.latency.items()}),
        )
        found.append(replace(m, outcome=outcome, peak_dirty_pages=number * 37 % 7 if m.mode == "buffered" else 0))
    return found


def lose(measurements: Measurements, *lost: tuple[int, str]) -> list[results.Measurement]:
    return [m for m in measurements if (m.pair, m.variant) not in lost]


def agree(cell: summary.Cell) -> Counter[str]:
    """Is what is printed as a ratio that of what is printed as figures?"""
    kinds: Counter[str] = Counter()
    for name, ratio in cell.ratios.items():
        base, other = next(iter(cell.values.values())), cell.values[name]
        if isinstance(ratio, stats.Ratio):
            assert ratio.estimate == pytest.approx(other / base)
        else:
            assert ratio.estimate == pytest.approx(other - base)
        assert {len(values) for values in cell.boots.values()} == {ratio.pairs}
        kinds[type(ratio).__name__] += 1
    return kinds


@pytest.mark.parametrize(
    "lost", [[], [(2, "rust")], [(1, "c"), (3, "rust")], [(1, "c"), (2, "rust"), (3, "c")]], ids=len
)
@pytest.mark.parametrize("groups_of", [summary.summarize, summary.beside])
def test_a_ratio_is_that_of_the_figures_beside_it(
    groups_of: Callable[..., list[summary.Group]], lost: list[tuple[int, str]]
) -> None:
    kinds: Counter[str] = Counter()
    for group in groups_of(lose(scattered(), *lost), summary.FULL):
        for cell in group.cells:
            kinds += agree(cell)
    assert kinds["Ratio"] > 50 and kinds["Difference"] > 5


def test_so_it_is_where_a_third_variant_lacks_a_pair() -> None:
    names = ("c", "rust", "kernel")
    measurements = lose(scattered(names), (2, "kernel"), (4, "c"))
    for group in summary.summarize(measurements, summary.FULL):
        assert group.variants == names
        for cell in group.cells:
            agree(cell)
            assert not cell.ratios or cell.ratios.keys() == {"rust", "kernel"}
        assert group.pairs == (2 if group.mode != "direct" else 1)


def test_figures_are_of_the_pairs_that_are_whole() -> None:
    measurements = scattered()
    of_all, of_whole = (
        summary.summarize(chosen)[0].cell("mb_per_s") for chosen in (measurements, lose(measurements, (2, "rust")))
    )
    assert of_whole.boots["c"] == [value for pair, value in enumerate(of_all.boots["c"], 1) if pair != 2]
    assert of_whole.values["c"] == pytest.approx(geometric_mean(of_whole.boots["c"]))
    assert of_whole.values["c"] != pytest.approx(of_all.values["c"])
    # Where no pair is whole, there are figures, but nothing is compared.
    alone = lose(measurements, (1, "c"), (2, "rust"), (3, "c"), (4, "rust"))
    cell = summary.summarize(alone)[0].cell("mb_per_s")
    assert cell.values.keys() == {"c", "rust"} and cell.ratios == {}


def test_the_worst_boot_is_told_of_what_should_be_nothing() -> None:
    left = {"c": -1, "rust": 0}
    measurements = [replace(m, counter_after=m.pair * left[m.variant], cached_pages=m.pair) for m in comparison()]
    group = summary.summarize(measurements)[0]
    assert group.cell("counter_after").values == {"c": 3, "rust": 0}
    assert group.cell("cached_after").values["c"] == pytest.approx(3 * results.PAGE / 1e6)
    assert group.cell("counter_after").ratios == {}


def test_a_percentile_is_the_mean_of_the_boots_percentiles() -> None:
    measurements = comparison()
    chosen = [m for m in measurements if (m.scenario, m.mode, m.variant) == ("random-burst", "buffered", "c")]
    group = next(g for g in summary.summarize(measurements) if (g.scenario, g.mode) == ("random-burst", "buffered"))
    of_boots = [m.percentile_ms(50) or 0 for m in chosen]
    assert len(set(of_boots)) == 3
    assert group.cell("p50").boots["c"] == of_boots
    assert group.cell("p50").values["c"] == pytest.approx(geometric_mean(of_boots))


def test_a_percentile_of_too_few_requests_is_not_printed() -> None:
    groups = summary.summarize(comparison(loads=[load for load in LOADS if load.scenario.name != "writers-32"]))
    one = table.Table("", groups)
    column = one.header().index("p99.9, ms")
    printed = {(row[0], row[column]) for row in one.rows()}
    # 1024 writes of 1 MiB, of which one is beyond it; 12288 of 4 KiB.
    assert {text for name, text in printed if name in ("sequential", "writers-4")} == {""}
    assert "" not in {text for name, text in printed if name == "random-burst"}
    assert "c" not in report.summary(groups[0])["figures"]["p99.9"]
    few = comparison(loads=[load for load in LOADS if load.scenario.name == "sequential"])
    short = full.tables_of(summary.summarize(few), summary.beside(few))
    assert not any("p99.9" in title for one in short for title in one.header())


def test_verdicts_say_what_was_not_shown() -> None:
    same = summary.verdicts(summary.summarize(comparison(rust=1.0)))
    assert len(same) == 1 and "0 of 60 comparisons stand out (Holm's method, 5 %)" in same[0]
    faster = summary.verdicts(summary.summarize(comparison(rust=1.5)))
    told = [line for line in faster if "sequential, dontcache, xfs, to durable: Rust higher, 1.5" in line]
    assert len(told) == 1 and told[0].partition(": ")[0] in ("stands out", "uncorrected")
    assert "more pairs" in summary.verdicts(summary.summarize(comparison(pairs=1)))[0]
    assert summary.verdicts(summary.summarize(lose(comparison(), *((pair, "rust") for pair in (1, 2, 3))))) == [
        "One variant alone has nothing to be compared with."
    ]


def with_p(*values: float, kind: type[stats.Comparison] = stats.Ratio) -> list[summary.Group]:
    """A group whose comparisons chance would show as often as this."""
    metrics = summary.FULL[: len(values)]
    ratios = [kind(1.1, 1.02 if p < 0.05 else 0.9, 1.2, 10, p) for p in values]
    cells = [
        summary.Cell(metric, {"c": 1.0, "rust": 1.1}, {"c": [1.0], "rust": [1.1]}, {"rust": ratio})
        for metric, ratio in zip(metrics, ratios, strict=True)
    ]
    return [summary.Group("tree", "buffered", "xfs", "cloud", ("c", "rust"), 10, cells)]


def test_what_is_only_outside_of_its_own_interval_is_told_as_uncorrected() -> None:
    lines = summary.verdicts(with_p(0.001, 0.04, 0.5, 0.6, 0.7))
    assert lines[0].startswith(
        "Rust/C over 10 pairs of boots: 1 of 5 comparisons stand out (Holm's method, 5 %), 1 more have a 95 % interval"
    )
    first, second = (metric.title for metric in summary.FULL[:2])
    assert lines[1:] == [
        f"stands out: tree, buffered, xfs, {first}: Rust higher, 1.10 (1.02-1.20)",
        f"uncorrected: tree, buffered, xfs, {second}: Rust higher, 1.10 (1.02-1.20)",
    ]
    assert "differences" not in lines[0]


def test_more_comparisons_ask_for_more() -> None:
    alone, among = with_p(0.002), with_p(0.002, *[0.5] * 19)[0].cells
    assert [one.outstanding for one in summary.comparisons(alone)] == [True]
    group = replace(alone[0], cells=among + among[1:])
    assert not any(one.outstanding for one in summary.comparisons([group]))


def test_cores_and_modes_are_families_of_their_own() -> None:
    """What stands out between the cores does not hang on how many figures DONTCACHE is compared with buffered by."""
    three = with_p(0.02)[0]
    ratio = three.cells[0].ratios["rust"]
    cell = replace(three.cells[0], ratios={"rust": ratio, "kernel": replace(ratio, p=0.04)})
    group = replace(three, variants=("c", "rust", "kernel"), cells=[cell])
    assert [(one.variant, one.outstanding) for one in summary.comparisons([group])] == [
        ("rust", True),
        ("kernel", True),
    ]


def test_what_has_zeros_is_counted_and_told_as_a_difference() -> None:
    measurements = [replace(m, peak_dirty_pages=0 if m.variant == "c" else 1000 + m.pair) for m in comparison(4)]
    groups = [g for g in summary.summarize(measurements) if (g.scenario, g.mode) == ("sequential", "buffered")]
    cell = groups[0].cell("peak_dirty")
    ratio = cell.ratios["rust"]
    assert isinstance(ratio, stats.Difference) and ratio.known and ratio.low < ratio.estimate < ratio.high
    assert cell.values == {"c": 0, "rust": pytest.approx(1002.5 * results.PAGE / 1e6)}
    compared = summary.comparisons(groups)
    assert sum(one.metric.name == "peak_dirty" for one in compared) == 1
    lines = summary.verdicts(groups)
    assert f" of {len(compared)} comparisons" in lines[0]
    assert lines[0].endswith(" 1 are differences, not ratios, because a value is zero.")
    (told,) = (line for line in lines if "peak dirty" in line)
    assert told == "stands out: sequential, buffered, xfs, peak dirty: Rust higher, +4.11 (+4.1 to +4.11) MB"


def test_no_comparison_vanishes_for_its_zeros() -> None:
    whole = summary.comparisons(summary.summarize(comparison(4)))
    zero = summary.comparisons(
        summary.summarize([replace(m, peak_dirty_pages=0) if m.pair == 2 else m for m in comparison(4)])
    )
    assert [(one.group.key, one.metric.name) for one in zero] == [(one.group.key, one.metric.name) for one in whole]
    assert sum(isinstance(one.ratio, stats.Difference) for one in zero) > 0
