# SPDX-License-Identifier: GPL-2.0
"""Boots whose parameter is no core: each value is told in the log, and none changes anything."""

import pytest
from rust_writeback import paths
from rust_writeback.vm import emulated
from rust_writeback.vm.options import VmOptions

if not paths.BZIMAGE.exists():
    pytest.skip("build/bzImage is not there; make kernel builds it", allow_module_level=True)

DEBUGFS = "/sys/kernel/debug/rust_writeback"
PARAMETERS = "/sys/module/rust_writeback/parameters"
ASK = f"cat {DEBUGFS}/core {PARAMETERS}/core"

BINARY = bytes(range(0x80, 0xC0)).decode(errors="surrogateescape")
BAD = ["", "x" * 200, BINARY, "RUST", "rus", "rustc", "rust,c", "%p%s%n", "0", '"rust c"']


@pytest.mark.parametrize("core", ["rust", "c"])
def test_a_bad_boot_parameter_warns_and_changes_nothing(core: str) -> None:
    """One boot has them all, after the core that was asked for."""
    given = [f"rust_writeback.core={value}" for value in BAD]
    given.append("rust_writeback.core")
    options = VmOptions(core=core, mem="512M", nvme=None, append=" ".join(given))
    result = emulated.run(options, [ASK], again=emulated.from_scratch)
    assert (result.status, result.stdout.decode()) == (0, f"{core}\n{core}\n")
    assert not result.complaint
    told = result.console.read_text(errors="replace").count("' invalid for parameter `rust_writeback.core'")
    assert told == len(given), f"{told} values are told to be bad"
