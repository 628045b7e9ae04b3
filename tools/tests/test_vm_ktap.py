# SPDX-License-Identifier: GPL-2.0
"""The guest tests' runner: whatever goes wrong, a script that did not pass has failed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.build import variants
from rust_writeback.check import guest_tests
from rust_writeback.vm import emulated
from rust_writeback.errors import Failure
from rust_writeback.check.guest_tests import Counts

if not (paths.LINUX / "tools/testing/kunit/kunit_parser.py").exists():
    pytest.skip("the kernel tree is not there; make kernel unpacks it", allow_module_level=True)


def ktap(*lines: str, plan: int | None = None, suite: str = "s") -> str:
    """What a script prints: a suite in a document of one test."""
    bad = any(line.startswith("not ok") for line in lines)
    body = [f"    {line}" for line in lines]
    head = ["KTAP version 1", "1..1", "    KTAP version 1", f"    # Subtest: {suite}", f"    1..{plan or len(lines)}"]
    return "\n".join([*head, *body, f"{'not ok' if bad else 'ok'} 1 {suite}"]) + "\n"


GOOD = ktap("ok 1 a", "ok 2 b # SKIP the C core oopses")


def parse(text: str, status: int = 0) -> Counts:
    return guest_tests.parse("t", text, status, quiet=True)


def test_passes_and_skips_are_counted() -> None:
    assert parse(GOOD) == Counts(passed=1, skipped=1)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 0),
        ("Traceback: no module\n", 1),
        (GOOD, 1),
        (ktap("ok 1 a", "not ok 2 b"), 1),
        (ktap("ok 1 a", plan=3), 0),
        ("KTAP version 1\n1..0\n", 0),
        ("KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: s\n    1..3\n    ok 1 a\n", 124),
    ],
)
def test_everything_else_is_a_failure(text: str, status: int) -> None:
    counts = parse(text, status)
    assert counts.failed >= 1 and counts.problems


Boot = Callable[[Callable[[bytes], None]], emulated.VmResult]


def result(status: int = 0, complaint: str = "") -> emulated.VmResult:
    return emulated.VmResult(status, b"", b"", Path("/log"), "tcg", [], "", "rust", "", 0, 1.0, complaint)


def says(*parts: bytes, status: int = 0, complaint: str = "") -> Boot:
    """A guest that prints these one after the other, and ends like this."""

    def boot(out: Callable[[bytes], None]) -> emulated.VmResult:
        for part in parts:
            out(part)
        return result(status, complaint)

    return boot


@pytest.fixture
def boots(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Boot]]:
    """The boots that the runner is going to see, in their order."""
    planned: list[Boot] = []

    def run(_options: emulated.VmOptions, _command: list[str], stdout: Callable[[bytes], None]) -> emulated.VmResult:
        return planned.pop(0)(stdout)

    monkeypatch.setattr(emulated, "run", run)
    yield planned
    assert not planned


def run(*names: str) -> Counts:
    return guest_tests.run_core("rust", [Path(name) for name in names], emulated.VmOptions(), quiet=True)


def section(name: str, text: str, status: int = 0, taint: int = 0) -> bytes:
    return f"\0begin {name}\n{text}\0end {status} {taint}\n".encode()


def test_one_boot_for_all(boots: list[Boot]) -> None:
    boots.append(says(*(bytes([byte]) for byte in section("a", GOOD) + section("b", GOOD))))
    assert run("a", "b") == Counts(passed=2, skipped=2)


def test_the_kernel_warned(boots: list[Boot]) -> None:
    sections = (section(name, GOOD, taint=emulated.TAINT_WARN) for name in "ab")
    boots.append(says(*sections, complaint="it is tainted by a warning"))
    counts = run("a", "b")
    assert counts.failed == 1 and counts.problems == ["a on rust: the kernel warned"]


def test_a_complaint_without_a_taint(boots: list[Boot]) -> None:
    boots.append(says(section("a", GOOD), complaint="WARNING: suspicious RCU usage"))
    counts = run("a")
    assert counts.failed == 1 and "suspicious RCU" in counts.problems[0]


def test_a_guest_that_dies_behind_a_script(boots: list[Boot]) -> None:
    def dies(out: Callable[[bytes], None]) -> emulated.VmResult:
        out(section("a", GOOD))
        raise emulated.VmFailure("oops", "the guest oopsed", Path("/log"))

    boots.append(dies)
    counts = run("a")
    assert (counts.passed, counts.failed) == (1, 1) and "a on rust: the guest oopsed" in counts.problems[0]


def test_an_early_end_is_no_success(boots: list[Boot]) -> None:
    boots.append(says(status=1))
    assert run("a").failed == 1


KASAN = variants.sanitizer("kasan")


@pytest.mark.parametrize(
    ("end", "passed"),
    [
        (emulated.VmFailure("oops", f"the guest oopsed: {KASAN.report} in lkdtm", Path("/log")), 1),
        (emulated.VmFailure("hang", "the guest hung", Path("/log")), 0),
        (result(complaint=f"{KASAN.report} in lkdtm"), 1),
        (result(complaint="WARNING: something else"), 0),
        (result(), 0),
    ],
)
def test_a_sanitizer_has_to_report_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, end: emulated.VmFailure | emulated.VmResult, passed: int
) -> None:
    def run(options: emulated.VmOptions, command: list[str], again: object) -> emulated.VmResult:
        assert options.kernel == KASAN.image and KASAN.crash in command[0]
        if isinstance(end, emulated.VmFailure):
            raise end
        return end

    monkeypatch.setattr(emulated, "run", run)
    counts = guest_tests.proof(KASAN)
    assert (counts.passed, counts.failed) == (passed, 1 - passed)


def test_the_guest_of_a_sanitizer_knows_it() -> None:
    options = guest_tests.options_for(KASAN)
    assert options.kernel == KASAN.image and options.append == "sanitizer=kasan kasan.fault=panic"
    assert guest_tests.options_for(variants.MEASURED) == guest_tests.OPTIONS


def test_a_sanitizer_that_is_asked_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run_core(core: str, scripts: list[Path], options: emulated.VmOptions, seconds: int) -> Counts:
        assert options.append.startswith("sanitizer=") and seconds > guest_tests.SECONDS
        ran.extend(script.name for script in scripts)
        return Counts(1)

    monkeypatch.setattr(guest_tests, "run_core", run_core)
    monkeypatch.setattr(guest_tests, "proof", lambda variant: Counts(int(variant.crash != "")))
    assert guest_tests.run(["dontcache_group"], ["rust"], variants.sanitizer("lockdep")).passed == 2
    assert guest_tests.run(["dontcache_group"], ["rust"], variants.sanitizer("kmemleak")).passed == 1
    assert ran == ["test_dontcache_group.py", "sanitizer.py"] * 2
    assert guest_tests.SANITIZER.exists()


def test_no_such_script() -> None:
    with pytest.raises(Failure, match="no guest test"):
        guest_tests.find_scripts(["no-such-script"])
