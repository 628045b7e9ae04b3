# SPDX-License-Identifier: GPL-2.0
"""The guest tests' runner: whatever goes wrong, a script that did not pass has failed."""

from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.build import variants
from rust_writeback.check import guest_tests
from rust_writeback.check.guest_tests import Counts
from rust_writeback.vm import emulated

from fake_guests import Boot, dies, plan, says, section

if not (paths.LINUX / "tools/testing/kunit/kunit_parser.py").exists():
    pytest.skip("the kernel tree is not there; make kernel unpacks it", allow_module_level=True)


def ktap(*lines: str) -> str:
    """What a script prints: a suite in a document of one test."""
    bad = any(line.startswith("not ok") for line in lines)
    head = ["KTAP version 1", "1..1", "    KTAP version 1", "    # Subtest: s", f"    1..{len(lines)}"]
    return "\n".join([*head, *(f"    {line}" for line in lines), f"{'not ok' if bad else 'ok'} 1 s"]) + "\n"


GOOD = ktap("ok 1 a", "ok 2 b # SKIP the C core oopses")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Traceback: no module\n", 1),
        (GOOD, 1),
        (ktap("ok 1 a", "not ok 2 b"), 1),
        (ktap("ok 1 a", "ok 3 b"), 0),
        ("KTAP version 1\n1..0\n", 0),
        ("KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: s\n    1..3\n    ok 1 a\n", 0),
    ],
)
def test_everything_else_is_a_failure(text: str, status: int) -> None:
    counts = guest_tests.parse("t", text, status)
    assert counts.failed >= 1 and counts.problems


TAINTED = (section(name, GOOD, taint=emulated.TAINT_WARN) for name in "ab")


@pytest.mark.parametrize(
    ("boot", "passed", "problem"),
    [
        # Byte by byte.
        (says(*(bytes([byte]) for byte in section("a", GOOD) + section("b", GOOD))), 2, ""),
        (says(*TAINTED, complaint="it is tainted by a warning"), 2, "a on rust: the kernel warned"),
        (says(section("a", GOOD), section("b", GOOD), complaint="WARNING: suspicious RCU usage"), 2, "suspicious RCU"),
        (dies(section("a", GOOD), section("b", GOOD)), 2, "b on rust: the guest oopsed"),
        (says(status=1), 0, "ran no script"),
    ],
)
def test_a_guest_is_judged_by_its_output_and_its_end(monkeypatch: pytest.MonkeyPatch, boot: Boot, passed: int, problem: str) -> None:
    plan(monkeypatch, boot)
    counts = guest_tests.run_core("rust", [Path("a"), Path("b")], emulated.VmOptions())
    assert (counts.passed, counts.failed, len(counts.problems)) == (passed, bool(problem), bool(problem))
    assert problem in "".join(counts.problems)


KASAN = variants.SANITIZERS["kasan"]


@pytest.mark.parametrize(
    ("boot", "passed"),
    [
        (dies(said=f"the guest oopsed: {KASAN.report} in lkdtm"), 1),
        (says(complaint=f"{KASAN.report} in lkdtm"), 1),
        (says(complaint="WARNING: something else"), 0),
        (says(), 0),
    ],
)
def test_a_sanitizer_has_to_report_the_planted_mistake(monkeypatch: pytest.MonkeyPatch, boot: Boot, passed: int) -> None:
    def run(options: emulated.VmOptions, command: list[str], again: object) -> emulated.VmResult:
        assert options.kernel == KASAN.image and options.append == "sanitizer=kasan kasan.fault=panic"
        assert KASAN.crash in command[0]
        return boot(lambda _: None)

    monkeypatch.setattr(emulated, "run", run)
    counts = guest_tests.proof(KASAN)
    assert (counts.passed, counts.failed) == (passed, 1 - passed)


@pytest.mark.parametrize(("name", "passed"), [("lockdep", 2), ("kmemleak", 1)])
def test_a_sanitizer_that_is_asked_comes_last(monkeypatch: pytest.MonkeyPatch, name: str, passed: int) -> None:
    ran: list[str] = []

    def run_core(core: str, scripts: list[Path], options: emulated.VmOptions, seconds: int) -> Counts:
        assert options.append.startswith(f"sanitizer={name}") and seconds > guest_tests.SECONDS
        ran.extend(script.name for script in scripts)
        return Counts(1)

    monkeypatch.setattr(guest_tests, "run_core", run_core)
    monkeypatch.setattr(guest_tests, "proof", lambda variant: Counts(int(variant.crash != "")))
    assert guest_tests.run(["dontcache_group"], ["rust"], variants.SANITIZERS[name]).passed == passed
    assert ran == ["test_dontcache_group.py", guest_tests.SANITIZER.name] and guest_tests.SANITIZER.exists()
