# SPDX-License-Identifier: GPL-2.0
"""The runner of the conformance rows: a row counts as kept only if it says so itself."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rust_writeback.build import kernel
from rust_writeback.check import conformance, power_cuts
from rust_writeback.vm import emulated, in_turn, machine
from rust_writeback.check.conformance import BROKEN, HANG, KEPT, NOT_RUN, Result, Row, WARNED
from rust_writeback.errors import Failure
from rust_writeback.check.guest_tests import Counts

KEEPS = '{"kept": true, "figures": "0 of 0"}'
ROWS = [Row(name, "no oops", "x") for name in ("first", "second", "third")]


@pytest.mark.parametrize(
    ("output", "status", "verdict"),
    [
        (f"a word before\n{KEEPS}\n", 0, KEPT),
        ('{"kept": false, "figures": "1 of 0"}\n', in_turn.SPOILT, BROKEN),
        ('{"kept": false, "figures": "1 of 0"}\n', 0, NOT_RUN),
        (KEEPS, in_turn.SPOILT, NOT_RUN),
        ("", 0, NOT_RUN),
        (KEEPS, 1, NOT_RUN),
        (f"{KEEPS}\nTraceback\n", 0, NOT_RUN),
        ('{"kept": 1, "figures": ""}', 0, NOT_RUN),
        ('{"kept": true}', 0, NOT_RUN),
        ("[]", 0, NOT_RUN),
        (KEEPS, 124, HANG),
        ("", 137, HANG),
    ],
)
def test_what_a_row_says_and_how_it_ends(output: str, status: int, verdict: str) -> None:
    assert conformance.judge(output, status)[0] == verdict


Boot = Callable[[Callable[[bytes], None]], emulated.VmResult]


def says(*scripts: bytes, status: int = 0, complaint: str = "", console: Path = Path("/log")) -> Boot:
    """A guest that prints these one after the other, and ends like this."""

    def boot(stdout: Callable[[bytes], None]) -> emulated.VmResult:
        for one in scripts:
            stdout(one)
        return emulated.VmResult(status, b"", b"", console, "tcg", [], "", "rust", "", 0, 1.0, complaint=complaint)

    return boot


def script(name: str, said: str = KEEPS, taint: int = 0, status: int = 0) -> bytes:
    return f"\0begin {name}\n{said}\n\0end {status} {taint}\n".encode()


def run(monkeypatch: pytest.MonkeyPatch, *boots: Boot) -> dict[str, Result]:
    """The results of rows in guests that do what they are told, one after the other."""
    left = list(boots)

    def boot(options: emulated.VmOptions, command: list[str], stdout: Callable[[bytes], None]) -> emulated.VmResult:
        return left.pop(0)(stdout)

    monkeypatch.setattr(emulated, "run", boot)
    return conformance.run_inside(conformance.Machine("rust", True), ROWS, {}, emulated.Boots())


def test_a_row_that_kills_the_guest_is_named_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(stdout: Callable[[bytes], None]) -> emulated.VmResult:
        stdout(script("first") + b"\0begin second\n")
        raise emulated.VmFailure("oops", "the guest oopsed", Path("/src/build/log/x"))

    results = run(monkeypatch, dies, says(script("third")))
    assert [result.verdict for result in results.values()] == [KEPT, "oops", KEPT]
    assert [problem.split(":")[0] for problem in conformance.problems({"rust": results})] == ["second on Rust"]
    assert not conformance.problems({"c": results})


def test_the_rows_after_a_broken_promise_get_a_new_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = script("first", '{"kept": false, "figures": "1 of 0"}', status=in_turn.SPOILT)
    results = run(monkeypatch, says(broken, status=in_turn.SPOILT), says(script("second"), script("third")))
    assert [result.verdict for result in results.values()] == [BROKEN, KEPT, KEPT]


def test_the_places_of_a_row_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    told = '{"kept": true, "figures": "2 of 2", "each": {"xfs": "", "ext4": ""}}'
    results = run(monkeypatch, says(script("first", told), script("second"), script("third")))
    assert [result.each for result in results.values()] == [{"xfs": "", "ext4": ""}, {}, {}]


def test_a_warning_is_the_row_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    results = run(monkeypatch, says(*(script(row.name, taint=emulated.TAINT_WARN) for row in ROWS)))
    assert [result.verdict for result in results.values()] == [WARNED, KEPT, KEPT]


def test_what_the_kernel_says_in_its_log_alone_is_the_row_s_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    console = tmp_path / "console"
    complaint = "259:0: 7 pages were counted"
    lines = ["guest script: first", "guest script: second", complaint, "guest script: third"]
    console.write_text("".join(f"[    1.0] {line}\n" for line in lines))
    results = run(monkeypatch, says(*(script(row.name) for row in ROWS), complaint=complaint, console=console))
    assert [result.verdict for result in results.values()] == [KEPT, WARNED, KEPT]
    assert "7 pages" in results["second"].figures


def test_a_guest_that_runs_nothing_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failure):
        run(monkeypatch, says())


def test_a_driver_that_ends_early_leaves_its_row_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    results = run(monkeypatch, says(b"\0begin first\n", status=3), says(script("second"), script("third")))
    assert results["first"].verdict == NOT_RUN
    assert conformance.problems({"c": results})


def test_a_row_that_was_not_run_fails_the_command_on_either_core() -> None:
    for core in conformance.CORES:
        assert conformance.problems({core: {"first": Result(NOT_RUN, "")}})
    assert not conformance.problems({"c": {"first": Result(BROKEN, "")}, "rust": {"first": Result(KEPT, "")}})


def test_rows_are_found_by_pattern() -> None:
    assert {row.promise for row in conformance.find_rows(["exact_counter_*"])} == {"exact counter"}
    with pytest.raises(Failure):
        conformance.find_rows(["exact"])


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [(Counts(), NOT_RUN), (Counts(skipped=1), NOT_RUN), (Counts(passed=2), KEPT), (Counts(passed=2, failed=1), BROKEN)],
)
def test_a_row_of_many_cases(counts: Counts, verdict: str) -> None:
    assert conformance.of_counts(counts).verdict == verdict


def test_a_row_from_the_host_is_one_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    row = conformance.POWER_CUTS
    counts = Counts(failed=1, problems=["lost"], boots=emulated.Boots(count=3, deaths=1))
    monkeypatch.setattr(power_cuts, "run", lambda *_, **__: counts)
    assert conformance.find_rows([row.name]) == [row]
    boots = emulated.Boots(count=4)
    assert conformance.run_rows(conformance.Machine("c", True), [row], {}, boots) == {row.name: Result(BROKEN, "0 of 1; lost")}
    assert boots.told() == "1 of 7 boots"


def test_one_row_has_a_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Though no guest has told of its kernel."""
    monkeypatch.setattr(power_cuts, "run", lambda *_, **__: Counts(passed=6))
    monkeypatch.setattr(kernel, "ensure", lambda variant: None)
    monkeypatch.setattr(machine, "polite", lambda: None)
    name = conformance.POWER_CUTS.name
    assert conformance.main(["--only", name, "--core", "rust", "--report", str(tmp_path)]) == 0
    lines = (tmp_path / "conformance.md").read_text().splitlines()
    row = lines.index("| promise | row | Rust | figures of Rust |")
    assert lines[row + 1 : row + 3] == ["| --- | --- | --- | --- |", f"| crash safe | `{name}` | kept | 6 of 6 |"]
    assert "Rust: 1 of 1 rows kept" in capsys.readouterr().out
