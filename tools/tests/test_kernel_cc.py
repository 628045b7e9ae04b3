# SPDX-License-Identifier: GPL-2.0
"""The kernel's compiler: what ccache gives back is what would be compiled."""

import subprocess
from pathlib import Path

from rust_writeback.build import kernel


def compiled(folder: Path, name: str) -> bytes:
    """The object of a source in the folder, with a cache in the folder."""
    environment = kernel.make_environment() | {"CCACHE_DIR": str(folder / "ccache")}
    command = [str(kernel.COMPILER), "-c", "-MD", "-o", "object", name]
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
