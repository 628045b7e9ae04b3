# SPDX-License-Identifier: GPL-2.0
"""The audit: what is unsafe is found wherever it stands, explained, counted, and only ever less."""

from pathlib import Path

import pytest
from rust_writeback.check import audit
from rust_writeback.check.audit import Unsafe
from rust_writeback.errors import Failure


def found(folder: Path, text: str, name: str = "mm/a.rs") -> list[Unsafe]:
    """What the audit finds in a file of this text."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return audit.read([file], folder)


def use(file: str = "mm/a.rs", line: int = 1, kind: str = "block", text: str = "why") -> Unsafe:
    """A use of unsafe with nothing wrong."""
    return Unsafe(file, line, kind, "f", True, (), (), text)


WHOLE = """\
/// A lock.
///
/// # Safety
///
/// Must be held
/// for long.
///
/// # Examples
///
/// None.
pub unsafe trait Held {}

// SAFETY: Held since
// boot.
#[cfg(a)]
unsafe impl Held for Boot {}

impl Boot {
    /// # Safety
    ///
    /// `lock` must live.
    #[inline]
    pub unsafe fn of(lock: *mut bindings::lock, f: unsafe fn()) {
        // SAFETY: The caller's promise.
        unsafe { bindings::take(lock) }
    }

    fn safe(&self) -> usize {
        // INVARIANT: None.
        // SAFETY: Only read.
        // INVARIANT: None either.
        let two = bindings::outside
            + unsafe { bindings::sum(kernel::bindings::shift(&raw const bindings::jiffies), Self::of, bindings::ONE) };
        two
    }
}

// SAFETY: By its count.
unsafe impl Counted for Boot {
    unsafe fn put(&self) {
        // SAFETY: As `Counted` asks.
        assert!(1 == unsafe { bindings::put() }, "in a macro, where `unsafe` is a word");
    }
}

// The word unsafe in a comment is none.
static ZERO: Zero = const {
    // SAFETY: Zeroes are valid.
    unsafe { zeroed() }
};
"""


def test_all_of_a_file_is_found_with_its_reason(tmp_path: Path) -> None:
    assert [(use.line, use.kind, use.owner, use.is_safe, use.text) for use in found(tmp_path, WHOLE)] == [
        (11, "trait", "Held", True, "Must be held for long."),
        (16, "impl", "Held for Boot", True, "Held since boot."),
        (23, "fn", "Boot::of", False, "`lock` must live."),
        (25, "block", "Boot::of", False, "The caller's promise."),
        (33, "block", "Boot::safe", True, "Only read."),
        (39, "impl", "Counted for Boot", True, "By its count."),
        (40, "method", "Boot::put", False, "As its trait asks."),
        (42, "block", "Boot::put", False, "As `Counted` asks."),
        (49, "block", "", True, "Zeroes are valid."),
    ]


def test_calls_of_c_are_those_within_the_block(tmp_path: Path) -> None:
    (block,) = [use for use in found(tmp_path, WHOLE) if use.owner == "Boot::safe"]
    assert block.calls == ("sum", "shift")
    assert block.names == ("jiffies", "ONE")


def test_only_safe_functions_let_c_be_reached(tmp_path: Path) -> None:
    report = audit.render(found(tmp_path, WHOLE), {"mm/a.rs": 10}, 1)
    assert "| `sum` | `Boot::safe` (mm/a.rs:33) |" in report
    assert "| `take` |" not in report and "| `put` |" not in report
    assert "| mm/a.rs | 4 | 2 | 1 | 1 | 1 | 9 | 10 |" in report


def test_function_in_an_unsafe_block_is_safe_again(tmp_path: Path) -> None:
    text = "unsafe fn a() { unsafe { fn b() { bindings::c(); unsafe { bindings::d() } } } }"
    outer, inner = [use for use in found(tmp_path, text) if use.kind == "block"]
    assert (outer.is_safe, outer.calls) == (False, ())
    assert (inner.is_safe, inner.calls) == (True, ("d",))


def test_whole_file_has_nothing_wrong(tmp_path: Path) -> None:
    assert list(audit.problems(found(tmp_path, WHOLE))) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("fn f() {\n    unsafe { g() }\n}", "mm/a.rs:2: unsafe block of f without a `// SAFETY:` comment"),
        ("fn f() {\n    // SAFETY:\n    unsafe { g() }\n}", "mm/a.rs:3: unsafe block of f without a"),
        ("fn f() {\n    // SAFETY: Far.\n    h();\n    unsafe { g() }\n}", "mm/a.rs:4: unsafe block of f without a"),
        ("// SAFETY: No.\nunsafe fn f() {}", "mm/a.rs:2: unsafe fn of f without a `# Safety` section"),
        ("/// # Safety\nunsafe fn f() {}", "mm/a.rs:2: unsafe fn of f without a `# Safety` section"),
        ("unsafe impl Send for A {}", "mm/a.rs:1: unsafe impl of Send for A without a `// SAFETY:` comment"),
        ("macro_rules! m {\n    () => { unsafe { g() } };\n}", "mm/a.rs:2: unsafe where it cannot be told"),
        ("#[unsafe(no_mangle)]\nfn f() {}", "mm/a.rs:1: unsafe where it cannot be told"),
        ("use kernel::bindings::g;", "mm/a.rs:1: imports names of C"),
        ("use kernel::{bindings as c};", "mm/a.rs:1: imports names of C"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, what: str) -> None:
    (problem,) = audit.problems(found(tmp_path, text))
    assert problem.startswith(what)


def test_pure_core_has_none() -> None:
    file = "rust/kernel/writeback/kick.rs"
    (problem,) = audit.problems([use(file, 7)])
    assert problem.startswith(f"{file}:7: unsafe in the pure core")


def test_ceiling_is_kept() -> None:
    uses = [use(line=1), use(line=2)]
    assert list(audit.off_ceiling(uses, {"mm/a.rs": 2})) == []
    assert list(audit.off_ceiling(uses, {"mm/a.rs": 1})) == ["mm/a.rs: unsafe is used 2 times; tools/unsafe.toml allows 1"]
    assert list(audit.off_ceiling(uses, {})) == ["mm/a.rs: unsafe is used 2 times; tools/unsafe.toml allows 0"]


def test_ceiling_goes_down_with_the_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(audit.off_ceiling([use()], {"mm/a.rs": 1})) == []
    assert not audit.judge([use()], {"mm/a.rs": 2, "mm/gone.rs": 1})
    said = capsys.readouterr().err
    assert "mm/a.rs: unsafe is used 1 times; tools/unsafe.toml allows 2: lower it to 1" in said
    assert "mm/gone.rs: unsafe is used 0 times; tools/unsafe.toml allows 1: remove its line" in said


def test_higher_number_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert not audit.judge([use()], {})
    assert "audit: mm/a.rs: unsafe is used 1 times; tools/unsafe.toml allows 0" in capsys.readouterr().err


def test_file_that_is_no_rust_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="cannot be read: .*mm/a.rs: "):
        found(tmp_path, "fn f() {")


def test_nothing_unsafe_at_all_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no unsafe code in 1 files"):
        found(tmp_path, "fn f() {}")


@pytest.mark.parametrize(
    ("text", "message"),
    [("nonsense", "cannot be read"), ('"a" = "b"', "not a number"), ('"a" = 0', "not a number")],
)
def test_bad_ceilings_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "unsafe.toml"
    file.write_text(text)
    with pytest.raises(Failure, match=message):
        audit.ceilings(file)


def test_all_rust_of_the_kernel_is_looked_at(tmp_path: Path) -> None:
    names = ["block/a.rs", "fs/a.rs", "kunit/a.rs", "mm/a.rs", "rust/kernel/fs/a.rs"]
    for name in [*names, "kunit/compile_fail/a.rs", "mm/a.c"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path.relative_to(tmp_path)) for path in audit.sources(tmp_path)] == names
