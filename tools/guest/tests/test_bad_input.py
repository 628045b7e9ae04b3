#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Whatever is thrown at the debugfs files is refused, and they show what they document."""

import errno
import os
import random
import re
from collections.abc import Callable

from lib import ktap
from lib.dontcache import DEBUGFS, PAGE, file_system, opened

NUMBER = r"(0|[1-9]\d{0,13})"
"""No kernel pointer has so few digits, in whatever base."""
SHOWN = {
    "core": r"(rust|c)\n",
    "hold": r"[01]\n",
    "dontcache_dirty": rf"((\d+:\d+|[a-z0-9]+-\d+) {NUMBER} {NUMBER}\n)+",
    "micro": rf"([a-z_]+ -?{NUMBER}\n)+",
    "micro_bios": rf"([a-z_0-9]+ -?{NUMBER}\n)+",
}
STILL = ("core", "hold", "dontcache_dirty")
"""What shows the same twice as long as nobody writes."""
TRIGGER = "micro_drop"
"""What shows something only once it was written to."""

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


def show(name: str, piece: int = PAGE) -> str:
    """The file, read in pieces of so many bytes."""
    with opened(DEBUGFS / name, os.O_RDONLY) as fd:
        return b"".join(iter(lambda: os.read(fd, piece), b"")).decode("latin-1")


def write(name: str, data: bytes) -> None:
    """One write, whole or refused."""
    with opened(DEBUGFS / name, os.O_WRONLY) as fd:
        written = os.write(fd, data)
    assert written == len(data), f"{name} took {written} of {len(data)} bytes"


def they_show_what_is_documented() -> None:
    """No other byte, however the file is read, and only to root; each file is known here."""
    found = {path.name: path.stat() for path in DEBUGFS.iterdir() if path.is_file()}
    assert set(STILL) <= set(found) <= {*SHOWN, TRIGGER}, f"found {sorted(found)}"
    for name, stat in found.items():
        assert not stat.st_mode & 0o177 and stat.st_uid == 0, f"{name} has mode {stat.st_mode:o}"
    for name in STILL:
        whole = show(name)
        assert re.fullmatch(SHOWN[name], whole), f"{name} shows {whole!r}"
        for piece in (1, 7, 64 * 1024):
            assert show(name, piece) == whole, f"{name} shows something else in pieces of {piece}"


def only_a_switch_is_taken() -> None:
    """The switch stays where it was, whichever way that is."""
    try:
        for on in (b"1", b"0"):
            write("hold", on)
            for data in ANYTHING:
                got = error_of(lambda: write("hold", data))
                assert got in ("EINVAL", "ERANGE") and show("hold") == f"{on.decode()}\n", f"{data[:20]!r} gave {got}"
    finally:
        write("hold", b"0")


def only_a_regular_file_is_measured() -> None:
    """The micro-benchmark wants the number of an open regular file, and starts nothing without one."""
    if not (DEBUGFS / "micro").exists():
        raise ktap.Skip("the kernel has no micro-benchmark")
    for data in (b"", *ANYTHING):
        got = error_of(lambda: write("micro", data))
        assert got in ("EINVAL", "EBADF", "ERANGE"), f"{data[:20]!r} gave {got}"
    for path in ("/dev/null", "/tmp", "/dev/ram0"):
        with opened(path, os.O_RDONLY) as fd:
            got = error_of(lambda: write("micro", str(fd).encode()))
        assert got == "EINVAL", f"{path} gave {got}"
    assert error_of(lambda: show("micro")) == "ENODATA", "a refused measurement has left a result"
    with file_system("ext4", "/dev/ram0") as root, opened(root / "file") as fd:
        os.pwrite(fd, bytes(1 << 20), 0)
        write("micro", str(fd).encode())
    for name in ("micro", "micro_bios"):
        text = show(name)
        assert re.fullmatch(SHOWN[name], text), f"{name} shows {text!r}"


CASES = (they_show_what_is_documented, only_a_switch_is_taken, only_a_regular_file_is_measured)

ktap.main("bad_input", [(case.__name__, case) for case in CASES])
