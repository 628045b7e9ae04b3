#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Whatever is thrown at the debugfs files and parameters is refused, and they show what they document."""

import contextlib
import errno
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from lib import ktap
from lib.dontcache import DEBUGFS, PAGE, file_system, opened

PARAMETERS = Path("/sys/module/rust_writeback/parameters")

NUMBER = r"(0|[1-9]\d{0,13})"
"""No kernel pointer has so few digits, in whatever base."""
SHOWN = {
    "core": r"(rust|c)\n",
    "hold": r"[01]\n",
    "dontcache_dirty": rf"((\d+:\d+|[a-z0-9]+-\d+) {NUMBER} {NUMBER}\n)+",
    "micro": rf"([a-z_]+ -?{NUMBER}\n)+",
    "micro_bios": rf"([a-z_0-9]+ -?{NUMBER}\n)+",
}
MODES = {
    "core": 0o400,
    "hold": 0o600,
    "dontcache_dirty": 0o400,
    "micro": 0o600,
    "micro_bios": 0o400,
    "micro_drop": 0o600,
}
STILL = ("core", "hold", "dontcache_dirty")
"""What shows the same twice as long as nobody writes."""

BINARY = random.Random(7).randbytes(PAGE)
ANYWHERE = {
    "nothing": b"",
    "end of line": b"\n",
    "NUL": b"\0",
    "31 bytes": b"x" * 31,
    "32 bytes": b"x" * 32,
    "a page": b"x" * PAGE,
    "1 MiB": b"x" * (1 << 20),
    "binary": BINARY,
    "short binary": b"\xff\xfe\x80\x01",
    "format": b"%p %s %n",
}
DESCRIPTORS = {
    b"1.5": errno.EINVAL,
    b"0x": errno.EINVAL,
    b"3 4": errno.EINVAL,
    b"-1": errno.EBADF,
    b"-2147483648": errno.EBADF,
    b"2147483647": errno.EBADF,
    b"2147483648": errno.ERANGE,
    b"99999999999": errno.ERANGE,
    b"9" * PAGE: errno.ERANGE,
}
"""What is no number of an open file."""

def error_of(function: Callable[[], object]) -> str:
    """The name of the error that this ends with."""
    try:
        function()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "no error"


def files() -> list[str]:
    """The files of the folder; those below have a test of their own."""
    return [path.name for path in DEBUGFS.iterdir() if path.is_file()]


def show(name: str, piece: int = PAGE) -> str:
    """The file, read in pieces of so many bytes."""
    with opened(DEBUGFS / name, os.O_RDONLY) as fd:
        return b"".join(iter(lambda: os.read(fd, piece), b"")).decode("latin-1")


def write(name: str, data: bytes) -> None:
    """One write, whole or refused."""
    with opened(DEBUGFS / name, os.O_WRONLY) as fd:
        written = os.write(fd, data)
    assert written == len(data), f"{name} took {written} of {len(data)} bytes"


@contextlib.contextmanager
def unchanged() -> Iterator[None]:
    """What the files show is the same before and after."""
    before = {name: show(name) for name in STILL}
    yield
    after = {name: show(name) for name in STILL}
    assert after == before, f"was {before}, is {after}"


def all_files_are_known() -> None:
    """Each file has its mode, and is root's; one that is not tested here is missing below."""
    found = {name: (DEBUGFS / name).stat() for name in files()}
    assert set(STILL) <= set(found) <= set(MODES), f"found {sorted(found)}"
    for name, stat in found.items():
        assert stat.st_mode & 0o7777 == MODES[name], f"{name} has mode {stat.st_mode:o}"
        assert (stat.st_uid, stat.st_gid) == (0, 0), f"{name} is not root's"
    mode = (PARAMETERS / "core").stat().st_mode & 0o7777
    assert mode == 0o444, f"the parameter has mode {mode:o}"


def they_show_what_is_documented() -> None:
    """No other byte, however the file is read."""
    for name in STILL:
        whole = show(name)
        assert re.fullmatch(SHOWN[name], whole), f"{name} shows {whole!r}"
        for piece in (1, 7, 64 * 1024):
            assert show(name, piece) == whole, f"{name} shows something else in pieces of {piece}"
        if name == "hold":
            continue  # It has no offset.
        with opened(DEBUGFS / name, os.O_RDONLY) as fd:
            parts = (os.pread(fd, 3, 1), os.pread(fd, 1, len(whole)), os.pread(fd, 1, 1 << 40))
        assert parts == (whole[1:4].encode(), b"", b""), f"{name} has {parts} at offsets"


def measurements_show_what_is_documented() -> None:
    """The files of the micro-benchmark, where the kernel has it."""
    if not (DEBUGFS / "micro").exists():
        raise ktap.Skip("the kernel has no micro-benchmark")
    assert error_of(lambda: show("micro")) == "ENODATA", "there is a result before anything was measured"
    with file_system("ext4", "/dev/ram0") as root, opened(root / "file") as fd:
        os.pwrite(fd, bytes(1 << 20), 0)
        write("micro", str(fd).encode())
    for name in ("micro", "micro_bios"):
        text = show(name)
        assert re.fullmatch(SHOWN[name], text), f"{name} shows {text!r}"


def only_a_switch_is_taken() -> None:
    """The switch stays where it was, whichever way that is."""
    try:
        for on in (b"1", b"0"):
            write("hold", on)
            for what, data in (ANYWHERE | {"two": b"2", "minus one": b"-1"}).items():
                with unchanged():
                    got = error_of(lambda: write("hold", data))
                assert got == "EINVAL" or not data, f"{what} gave {got}"
    finally:
        write("hold", b"0")


def no_descriptor_is_taken() -> None:
    """The micro-benchmark wants the number of an open regular file, and starts nothing without one."""
    if not (DEBUGFS / "micro").exists():
        raise ktap.Skip("the kernel has no micro-benchmark")
    before = error_of(lambda: show("micro"))
    for what, data in ANYWHERE.items():
        got = error_of(lambda: write("micro", data))
        assert got == "EINVAL", f"{what} gave {got}"
    for data, expected in DESCRIPTORS.items():
        got = error_of(lambda: write("micro", data))
        assert got == errno.errorcode[expected], f"{data[:20]!r} gave {got}"
    for path in ("/dev/null", "/tmp", "/dev/ram0"):
        with opened(path, os.O_RDONLY) as fd:
            got = error_of(lambda: write("micro", str(fd).encode()))
        assert got == "EINVAL", f"{path} gave {got}"
    assert error_of(lambda: show("micro")) == before, "a refused measurement has left a result"


CASES = (
    all_files_are_known,
    they_show_what_is_documented,
    measurements_show_what_is_documented,
    only_a_switch_is_taken,
    no_descriptor_is_taken,
)

if __name__ == "__main__":
    ktap.main("bad_input", [(case.__name__, case) for case in CASES])
