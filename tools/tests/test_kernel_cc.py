# SPDX-License-Identifier: GPL-2.0
"""The kernel's compiler: what ccache gives back is what would be compiled."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from rust_writeback.build import kernel


def compiled(folder: Path, name: str) -> bytes:
    """The object of a source in the folder, with a cache in the folder."""
    environment = kernel.make_environment() | {"CCACHE_DIR": str(folder / "ccache")}
    command = [kernel.COMPILER, "-c", "-MD", "-o", "object", name]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return (folder / "object").read_bytes()


def test_an_image_has_what_was_put_into_it(tmp_path: Path) -> None:
    """The next kernel of the same length is another one."""
    (tmp_path / "piggy.S").write_text('.section ".rodata", "a"\n.incbin "payload"\n')
    objects = []
    for payload in (b"one kernel", b"an other 1", b"one kernel"):
        (tmp_path / "payload").write_bytes(payload)
        objects.append(compiled(tmp_path, "piggy.S"))
        assert payload in objects[-1]
    assert objects[0] == objects[2]


def hits(folder: Path) -> int:
    command = ["ccache", "--print-stats"]
    environment = os.environ | {"CCACHE_DIR": str(folder / "ccache")}
    stats = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return sum(int(line.split()[1]) for line in stats.splitlines() if line.startswith("direct_cache_hit"))


def test_c_is_compiled_once(tmp_path: Path) -> None:
    (tmp_path / "code.c").write_text("int answer(void) { return 42; }\n")
    os.utime(tmp_path / "code.c", (0, 0))
    first = compiled(tmp_path, "code.c")
    assert hits(tmp_path) == 0
    assert compiled(tmp_path, "code.c") == first
    assert hits(tmp_path) == 1


@pytest.mark.parametrize("source", ["code.c", "code.S"])
def test_what_does_not_compile_fails(tmp_path: Path, source: str) -> None:
    (tmp_path / source).write_text("nonsense nonsense\n")
    with pytest.raises(subprocess.CalledProcessError):
        compiled(tmp_path, source)
