# SPDX-License-Identifier: GPL-2.0
"""What a failed test has to show, where nobody can look into the machine it ran on."""

import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from rust_writeback import paths
from rust_writeback.vm.emulated import VmFailure

sys.path.insert(0, str(paths.TOOLS / "guest"))

LINES = 600
"""An oops, or a lockup with the traces and the timers of all CPUs."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A guest that died unexpectedly shows the end of its console."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if report.failed and isinstance(error, VmFailure):
        console = error.console.read_text(errors="replace").splitlines()
        report.sections.append((f"console of the guest in {item.name}", "\n".join(console[-LINES:])))
    return report


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder that is not in /tmp, which enter hides, and has real files."""
    paths.BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.BUILD, prefix="test.") as folder:
        yield Path(folder)
