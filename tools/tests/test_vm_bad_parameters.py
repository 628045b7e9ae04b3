# SPDX-License-Identifier: GPL-2.0
"""Boots whose parameters are no core and no policy: each is told in the log, and none changes anything."""

from __future__ import annotations

import pytest
from rust_writeback import paths
from rust_writeback.vm import emulated
from rust_writeback.vm.options import VmOptions

if not paths.BZIMAGE.exists():
    pytest.skip("build/bzImage is not there; make kernel builds it", allow_module_level=True)

DEBUGFS = "/sys/kernel/debug/rust_writeback"
PARAMETERS = "/sys/module/rust_writeback/parameters"
ASK = f"cat {DEBUGFS}/core {PARAMETERS}/core {DEBUGFS}/policy {PARAMETERS}/policy"

LONG = "x" * 200
BINARY = bytes(range(0x80, 0xC0)).decode(errors="surrogateescape")
"""What no quotation mark and no space is, and no text."""

BAD = {
    "core": ["", LONG, BINARY, "RUST", "rus", "rustc", "rust,c", "%p%s%n", "0"],
    "policy": ["", LONG, BINARY, "KICK", "inlin", "inlined", "inline,none", "%p%s%n", "0"],
}


@pytest.mark.parametrize("core", ["rust", "c"])
def test_what_is_bad_is_told_and_changes_nothing(core: str) -> None:
    """One boot has them all, after the core that was asked for."""
    given = [f"rust_writeback.{name}={value}" for name, values in BAD.items() for value in values]
    # With blanks inside, and with no value at all.
    given += ['rust_writeback.core="rust c"', 'rust_writeback.policy="inline "']
    given += ["rust_writeback.core", "rust_writeback.policy"]
    options = VmOptions(core=core, mem="512M", nvme=None, append=" ".join(given))
    result = emulated.run(options, [ASK], again=emulated.from_scratch)
    policy = "adaptive" if core == "rust" else "kick"
    assert (result.status, result.stdout.decode()) == (0, f"{core}\n{core}\n{policy}\n{policy}\n")
    assert not result.warned
    log = result.console.read_text(errors="replace")
    for name, values in BAD.items():
        told = log.count(f"' invalid for parameter `rust_writeback.{name}'")
        assert told == len(values) + 2, f"{told} values of {name} are told to be bad"


def test_the_last_of_two_is_what_counts() -> None:
    """A bad value after a good one leaves the good one."""
    append = "rust_writeback.policy=none rust_writeback.policy=inline rust_writeback.policy=non"
    result = emulated.run(VmOptions(core="rust", mem="512M", nvme=None, append=append), [ASK], again=emulated.from_scratch)
    assert result.stdout.decode() == "rust\nrust\ninline\ninline\n"
