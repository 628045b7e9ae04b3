# SPDX-License-Identifier: GPL-2.0
"""Checks that with CONFIG_RUST_WRITEBACK=n every hooked C file compiles to the code that it had before.

Before means with the patches of the series that change the kernel's C whatever its configuration.

The hooked file and its pristine original are compiled with the same command line and the same line numbers. Their
code is compared: the bytes of every text section, and what its relocations refer to. Strings live in other
sections and may differ.
"""

import re
import subprocess
from difflib import SequenceMatcher
from pathlib import Path

from ..build import config, kernel, series
from ..build.variants import MEASURED
from ..errors import Failure
from ..paths import BUILD, LINUX, LOG
from ..run import must
from .compile_fail import saved_command
from .guest_tests import Counts

OUT = BUILD / "unchanged"


def code(object_file: Path) -> str:
    """The text sections of an object file and the symbols that they refer to."""
    out = subprocess.run(
        ["llvm-objdump", "-d", "-r", "--no-leading-addr", "--section=.text", "--section=.init.text",
         "--section=.exit.text", "--section=.noinstr.text", object_file],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    lines = out.splitlines()[3:]
    # Offsets into tables of strings and bugs follow the line numbers and the strings.
    return "\n".join(re.sub(r"(\.(?:rodata|data|bss|L)[\w.$]*)[+-]0x[0-9a-f]+", r"\1", line) for line in lines)


def renumbered(hooked: list[str], original: list[str]) -> str:
    """The hooked source, whose lines bear the original's numbers: some of the code holds them."""
    lines: list[str] = []
    for tag, start, end, hooked_start, hooked_end in SequenceMatcher(None, original, hooked, False).get_opcodes():
        lines += hooked[hooked_start:hooked_end]
        if tag != "equal":
            lines.append(f"#line {end + 1}")
    return "\n".join(lines) + "\n"


def compiled(name: str, kind: str, text: str, includes: str = "") -> str:
    """The code of a source that is compiled in the place of this hooked file, as the build does it."""
    place = Path(name)
    source = OUT / place.with_name(f"{place.stem}-{kind}.c")
    source.write_text(text)
    object_file = source.with_suffix(".o")
    # The compiler, and objtool on what it made.
    words = saved_command(OUT / place.parent / f".{place.stem}.o.cmd").split()
    words = [word for word in words if not word.startswith("-Wp,-MMD")]
    words = [str(object_file) if word == str(place.with_suffix(".o")) else word for word in words]
    first = next(index for index, word in enumerate(words) if word.startswith("-I"))
    words.insert(first, f"{includes} -iquote {LINUX / place.parent}")
    words = [word.replace(str(LINUX / place), str(source)) for word in words]
    must(["sh", "-c", " ".join(words)], LOG / "unchanged.log", f"the build of {source.name}", cwd=OUT)
    return code(object_file)


def before() -> dict[str, str]:
    """The kernel's C without our hooks."""
    _, patches = series.read_plan()
    files: dict[str, str] = {}
    for file in series.grow(patches):
        units = [unit for unit in file.units if patches[unit.patch].changes_c]
        files[file.name] = series.Grown(file.name, file.original, units).at(len(patches)) or ""
    return files


def run() -> Counts:
    """Each hooked C file is a case."""
    originals = before()
    names = [str(path.relative_to(series.ORIGINALS)) for path in sorted(series.ORIGINALS.rglob("*.c"))]
    # What has no hook needs no comparison, and may not be configured.
    names = [name for name in names if not name.startswith("rust/") and originals[name] != (LINUX / name).read_text()]
    # The configuration of the virtual machine's kernel, without any Rust.
    options = config.merge(MEASURED.fragments).items()
    kernel.configured({name: "n" if "_RUST" in name else value for name, value in options}, OUT, "-unchanged")
    wanted = [str(Path(name).with_suffix(".o")) for name in names]
    must(kernel.make(*wanted, out=OUT), LOG / "unchanged.log", "the hooked files", kernel.make_environment())
    counts = Counts()
    for name in names:
        source = renumbered((LINUX / name).read_text().splitlines(), originals[name].splitlines())
        hooked = compiled(name, "hooked", source)
        original = compiled(name, "original", originals[name], f"-I{series.ORIGINALS / 'include'}")
        if len(original) < 10000:
            raise Failure(f"the original of {name} has almost no code, so the comparison proves nothing")
        counts.judge(f"unchanged: {name}", None if hooked == original else "the code differs from the original")
    return counts
