#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Whatever is thrown at the debugfs files is refused, and they are for root alone."""

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

from lib import ktap
from lib.dontcache import DEBUGFS, PAGE, file_system, opened

ANYTHING = (
    b"\n", b"\0", b"777", b"-1", b"1.5", b"0x", b"3 4", b"x" * 31, b"x" * 32, b"x" * PAGE, b"x" * (1 << 20),
    b"9" * PAGE, b"2147483647", b"2147483648", b"-2147483648", b"%p %s %n", b"\xff\xfe\x80\x01", random.Random(7).randbytes(PAGE),
)  # fmt: skip
"""No switch, and no number of an open file."""


def error_of(function: Callable[[], object]) -> str:
    """The name of the error that this ends with."""
    try:
        function()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "no error"


def write(name: str, data: bytes) -> None:
    """One write, whole or refused."""
    with opened(DEBUGFS / name, os.O_WRONLY) as fd:
        written = os.write(fd, data)
    assert written == len(data), f"{name} took {written} of {len(data)} bytes"


def they_are_for_root_alone() -> None:
    """No other user can read or write any of them."""
    for path in filter(Path.is_file, DEBUGFS.iterdir()):
        stat = path.stat()
        assert not stat.st_mode & 0o177 and stat.st_uid == 0, f"{path.name} has mode {stat.st_mode:o}"


def only_a_switch_is_taken() -> None:
    """The switch stays where it was, whichever way that is."""
    try:
        for on in (b"1", b"0"):
            write("hold", on)
            for data in ANYTHING:
                got = error_of(lambda: write("hold", data))
                shows = (DEBUGFS / "hold").read_bytes()
                assert got in ("EINVAL", "ERANGE") and shows == on + b"\n", f"{data[:20]!r} gave {got}"
    finally:
        write("hold", b"0")


def only_a_regular_file_is_measured() -> None:
    """The micro-benchmark wants the number of an open regular file, and starts nothing without one."""
    micro = DEBUGFS / "micro"
    if not micro.exists():
        raise ktap.Skip("the kernel has no micro-benchmark")
    for data in (b"", *ANYTHING):
        got = error_of(lambda: write("micro", data))
        assert got in ("EINVAL", "EBADF", "ERANGE"), f"{data[:20]!r} gave {got}"
    for path in ("/dev/null", "/tmp", "/dev/ram0"):
        with opened(path, os.O_RDONLY) as fd:
            got = error_of(lambda: write("micro", str(fd).encode()))
        assert got == "EINVAL", f"{path} gave {got}"
    assert error_of(micro.read_bytes) == "ENODATA", "a refused measurement has left a result"
    with file_system("ext4", "/dev/ram0") as root, opened(root / "file") as fd:
        os.pwrite(fd, bytes(1 << 20), 0)
        write("micro", str(fd).encode())
    assert micro.read_bytes(), "a measurement has left no result"


CASES = (they_are_for_root_alone, only_a_switch_is_taken, only_a_regular_file_is_measured)

ktap.main("bad_input", [(case.__name__, case) for case in CASES])
