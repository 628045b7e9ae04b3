# SPDX-License-Identifier: GPL-2.0
"""The policy that a boot asks for, as the guest and its log tell it."""

from __future__ import annotations

import pytest
from rust_writeback import paths
from rust_writeback.vm import emulated
from rust_writeback.vm.options import VmOptions

if not paths.BZIMAGE.exists():
    pytest.skip("build/bzImage is not there; make kernel builds it", allow_module_level=True)

ASK = "cat /sys/kernel/debug/rust_writeback/policy /sys/module/rust_writeback/parameters/policy"


def boot(core: str, policy: str) -> tuple[str, str]:
    """What the guest says of its policy, and its log."""
    options = VmOptions(core=core, mem="512M", nvme=None, append=f"rust_writeback.policy={policy}")
    result = emulated.run(options, [ASK], again=emulated.from_scratch)
    assert result.status == 0
    return result.stdout.decode(), result.console.read_text()


@pytest.mark.parametrize("policy", ["inline", "kick"])
def test_the_boot_chooses(policy: str) -> None:
    told, log = boot("rust", policy)
    assert told == f"{policy}\n{policy}\n"
    assert "invalid for parameter" not in log


def test_what_is_no_policy_is_told_and_changes_nothing() -> None:
    told, log = boot("rust", "inlined")
    assert told == "adaptive\nadaptive\n"
    assert "`inlined' invalid for parameter `rust_writeback.policy'" in log


def test_the_c_core_has_no_choice() -> None:
    told, _ = boot("c", "inline")
    assert told == "kick\nkick\n"
