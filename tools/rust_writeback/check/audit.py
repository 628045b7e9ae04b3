# SPDX-License-Identifier: GPL-2.0
"""make audit: every use of unsafe, why it is sound, and the C that safe functions call.

tools/audit reads the files with syn. A Rust parser does not keep comments. They are taken from the lines above
what it has found.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import paths
from ..errors import Failure, Parser
from ..steps import write_whole
from . import host_tests

CEILINGS = paths.TOOLS / "unsafe.toml"
REPORT = paths.BUILD / "audit" / "unsafe.md"
PURE = "rust/kernel/writeback/"
KINDS = {"block": "blocks", "impl": "impls", "trait": "traits", "fn": "functions", "method": "methods"}
REFUSED = {
    "unread": "unsafe where it cannot be told what it means; write it outside of the macro or attribute",
    "import": "imports names of C; call them as bindings::name, so that they are seen",
}


@dataclass(frozen=True)
class Unsafe:
    """One use of the word: what tools/audit has to say of it, and its SAFETY text."""

    file: str
    line: int
    kind: str
    owner: str
    is_safe: bool
    """Whether the function that it is in can be called from safe code."""
    calls: tuple[str, ...]
    names: tuple[str, ...]
    text: str

    @property
    def place(self) -> str:
        """Where it is, as compilers say it."""
        return f"{self.file}:{self.line}"


def sources(project: Path = paths.PROJECT) -> list[Path]:
    """The Rust that the kernel gets, and its KUnit suites; what must not compile is left out."""
    found = [path for folder in ("rust", "mm", "fs", "block") for path in (project / folder).rglob("*.rs")]
    return sorted([*found, *(project / "kunit").glob("*.rs")])


def comment(lines: list[str], line: int) -> str:
    """The SAFETY comment right above a line (the first is 1), past attributes and the like; or nothing."""
    above: list[str] = []
    for text in reversed([text.strip() for text in lines[: line - 1]]):
        if not text.startswith(("// ", "///", "#[")) and text != "//":
            break
        above.insert(0, text)
    words: list[str] = []
    for text in (text.removeprefix("// ") for text in above if text.startswith("// ")):
        if text.startswith("SAFETY:"):
            words = [text.removeprefix("SAFETY:").strip()]
        elif re.match(r"[A-Z]+: ", text) and words:
            break
        elif words:
            words.append(text)
    return " ".join(words).strip()


def contract(docs: list[str]) -> str:
    """The section of a documentation that says what the caller must promise; or nothing."""
    words: list[str] | None = None
    for text in (line.strip() for line in docs):
        if text == "/// # Safety":
            words = []
        elif words is not None and (text.startswith("/// #") or not text.startswith("///")):
            break
        elif words is not None:
            words.append(text.removeprefix("///").strip())
    return " ".join(word for word in words or [] if word)


def explanation(kind: str, lines: list[str], line: int, start: int) -> str:
    """Why a use of the word is sound."""
    if kind == "method":
        return contract(lines[start - 1 : line - 1]) or "As its trait asks."
    if kind in ("fn", "trait"):
        return contract(lines[start - 1 : line - 1])
    return comment(lines, line) or comment(lines, start)


def read(files: list[Path], project: Path = paths.PROJECT) -> list[Unsafe]:
    """All that is unsafe in these files."""
    command = ["cargo", "run", "--quiet", "--package=audit", "--", *map(str, files)]
    environment = {**os.environ, **host_tests.ENVIRONMENT}
    result = subprocess.run(command, cwd=paths.PROJECT, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or [f"status {result.returncode}"])[-1]
        raise Failure(f"the Rust files cannot be read: {last}")
    text = {str(file): file.read_text().splitlines() for file in files}
    found = []
    for record in result.stdout.splitlines():
        file, line, start, kind, owner, caller, calls, names = record.split("\t")
        found.append(
            Unsafe(
                file=str(Path(file).relative_to(project)),
                line=int(line),
                kind=kind,
                owner=owner,
                is_safe=caller == "safe",
                calls=tuple(filter(None, calls.split(","))),
                names=tuple(filter(None, names.split(","))),
                text=explanation(kind, text[file], int(line), int(start)),
            )
        )
    if not found:
        raise Failure(f"no unsafe code in {len(files)} files; correct the list of files that the audit reads")
    return found


def ceilings(path: Path = CEILINGS) -> dict[str, int]:
    """How much each file may have."""
    try:
        table = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{path.name} cannot be read ({error}); correct that line") from None
    for file, number in table.items():
        if type(number) is not int or number < 1:
            raise Failure(f"{path.name}: {file} = {number!r} is not a number above 0; correct or remove the line")
    return table


def problems(found: Iterable[Unsafe]) -> Iterator[str]:
    """What is wrong, each with its place."""
    for use in found:
        if use.kind in REFUSED:
            yield f"{use.place}: {REFUSED[use.kind]}"
        elif use.file.startswith(PURE):
            yield f"{use.place}: unsafe in the pure core; move it to a file of rust/kernel/"
        elif not use.text:
            what = "`# Safety` section" if use.kind in ("fn", "trait") else "`// SAFETY:` comment"
            yield f"{use.place}: unsafe {use.kind} of {use.owner} without a {what}"


def off_ceiling(found: Iterable[Unsafe], allowed: Mapping[str, int]) -> Iterator[str]:
    """Where the number is not the one that is allowed: what has gone down may not come back."""
    numbers = Counter(use.file for use in found)
    for file in sorted(numbers.keys() | allowed.keys()):
        number, most = numbers[file], allowed.get(file, 0)
        if number != most:
            to_do = "" if number > most else f": lower it to {number}" if number else ": remove its line"
            yield f"{file}: unsafe is used {number} times; tools/{CEILINGS.name} allows {most}{to_do}"


def _table(head: str, rows: Iterable[tuple[object, ...]]) -> list[str]:
    """A table of Markdown; columns whose heads end in a colon hold numbers."""
    columns = head.split(" | ")
    rule = ("---:" if column.endswith(":") else "---" for column in columns)
    lines = [tuple(column.rstrip(":") for column in columns), tuple(rule), *rows]
    return ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]


def _callers(uses: Iterable[tuple[str, Unsafe]]) -> list[tuple[object, ...]]:
    """Rows of names of C, each with the safe functions that use it."""
    callers: defaultdict[str, list[str]] = defaultdict(list)
    for name, use in uses:
        caller = f"`{use.owner}` ({use.place})"
        if caller not in callers[name]:
            callers[name].append(caller)
    return [(f"`{name}`", ", ".join(callers[name])) for name in sorted(callers)]


def render(found: list[Unsafe], allowed: Mapping[str, int], files: int) -> str:
    """The report."""
    safe = [use for use in found if use.is_safe and use.kind == "block"]
    functions = _callers((name, use) for use in safe for name in use.calls)
    others = _callers((name, use) for use in safe for name in use.names)
    by_file: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for use in found:
        by_file[use.file][use.kind] += 1
    total = sum(by_file.values(), Counter[str]())
    numbers = [
        (name, *(counts[kind] for kind in KINDS), sum(counts.values()), ceiling)
        for name, counts, ceiling in [
            *((file, counts, allowed.get(file, 0)) for file, counts in sorted(by_file.items())),
            ("all", total, sum(allowed.values())),
        ]
    ]
    return "\n".join(
        [
            "# What is unsafe",
            "",
            f"{sum(total.values())} uses of unsafe in {len(by_file)} of {files} files, and {len(functions)} functions "
            "of C that safe functions call by name. Methods are unsafe ones of another's trait.",
            "",
            "## By file",
            "",
            *_table(" | ".join(["file", *(f"{plural}:" for plural in KINDS.values()), "all:", "allowed:"]), numbers),
            "",
            "## Functions of C that safe functions call",
            "",
            *_table("function | called by", functions),
            "",
            "## Variables and constants of C in the same blocks",
            "",
            *_table("name | used by", others),
            "",
            "## Each with its reason",
            "",
            *_table("place | what | of | SAFETY", ((use.place, use.kind, f"`{use.owner}`", use.text) for use in found)),
            "",
        ]
    )


def judge(found: list[Unsafe], allowed: Mapping[str, int]) -> bool:
    """Say what is wrong."""
    wrong = [*problems(found), *off_ceiling(found, allowed)]
    for line in wrong:
        print(f"audit: {line}", file=sys.stderr, flush=True)
    return not wrong


def lint(files: list[Path]) -> bool:
    """Whether nothing is wrong with what is unsafe in these files."""
    return judge(read(files), ceilings())


def main(arguments: list[str]) -> int:
    """The target of the same name."""
    Parser(prog="rust_writeback audit", description=__doc__).parse_args(arguments)
    files = sources()
    found, allowed = read(files), ceilings()
    report = render(found, allowed, len(files))
    write_whole(REPORT, report)
    print(report, end="", flush=True)
    return 0 if judge(found, allowed) else 1
