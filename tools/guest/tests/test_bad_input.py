#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Whatever is thrown at the debugfs files and parameters is refused, and they show what they document."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import mmap
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from lib import ktap
from lib.dontcache import DEBUGFS, PAGE, file_system, opened
from lib.walk import address_of, beside

PARAMETERS = Path("/sys/module/rust_writeback/parameters")
NOBODY = 65534

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
READ_ONLY = tuple(name for name, mode in MODES.items() if mode == 0o400)
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

_libc = ctypes.CDLL(None, use_errno=True)
for _call in (_libc.read, _libc.write):
    _call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
    _call.restype = ctypes.c_ssize_t
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


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


def others_are_kept_out() -> None:
    """Not even with the folder's descriptor does another user read or write them."""

    def try_all(folder: int) -> None:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        assert error_of(lambda: os.listdir(DEBUGFS)) == "EACCES"
        for name in names:
            for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
                got = error_of(functools.partial(os.open, name, flags, dir_fd=folder))
                assert got == "EACCES", f"opening {name} with {flags} gave {got}"
        assert error_of(functools.partial(os.open, PARAMETERS / "core", os.O_WRONLY)) == "EACCES"

    names = files()
    with unchanged(), opened(DEBUGFS, os.O_RDONLY | os.O_DIRECTORY) as folder:
        with beside(functools.partial(try_all, folder)):
            pass


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


def what_is_read_is_not_written() -> None:
    """Root may open what has no write permission, and gets no further."""
    for name in READ_ONLY:
        if (DEBUGFS / name).exists():
            for what, data in ANYWHERE.items():
                with unchanged():
                    got = error_of(lambda: write(name, data))
                assert got == "EINVAL", f"{what} to {name} gave {got}"
    path = PARAMETERS / "core"
    assert path.stat().st_mode & 0o7777 == 0o444, f"the parameter has mode {path.stat().st_mode:o}"
    assert path.read_text() == show("core"), "the parameter differs from the file"
    assert error_of(lambda: os.open(path, os.O_WRONLY)) == "EACCES", "the parameter can be written"


def no_offset_helps() -> None:
    """Neither a negative one nor one beyond the end."""
    for name in files():
        with unchanged(), opened(DEBUGFS / name, os.O_RDWR) as fd:
            for offset in (-1, -PAGE, -(1 << 63)):
                # A switch has no offset at all.
                wrong = ("ESPIPE", "EINVAL") if name == "hold" else ("EINVAL",)
                for call in (lambda: os.pread(fd, 8, offset), lambda: os.pwrite(fd, b"inline", offset)):
                    assert error_of(call) in wrong, f"{name} at {offset}"
                assert error_of(lambda: os.lseek(fd, offset, os.SEEK_SET)) in wrong, f"{name} to {offset}"
            for offset in (1, 1 << 40, (1 << 63) - 1):
                got = error_of(lambda: os.pwrite(fd, b"inline", offset))
                assert got in ("ESPIPE", "EINVAL"), f"{name} at {offset} gave {got}"


def no_pointer_is_followed() -> None:
    """Reads and writes from nowhere, from the kernel, and across the end of what is mapped."""
    with mmap.mmap(-1, 2 * PAGE) as mapping:
        mapping[PAGE - 6 : PAGE] = b"inline"
        assert _libc.mprotect(address_of(mapping) + PAGE, PAGE, 0) == 0
        nowhere = {
            "NULL": 0,
            "the first page": 8,
            "the kernel": 0xFFFF888000000000,
            "no address": 1 << 63,
            "a page without access": address_of(mapping) + PAGE,
            "the end of a page": address_of(mapping) + PAGE - 4,
        }
        for name in ("hold", "core", "dontcache_dirty"):
            for what, pointer in nowhere.items():
                with unchanged(), opened(DEBUGFS / name, os.O_RDWR) as fd:
                    # Across the end, a read may give what fits before it.
                    got = _libc.read(fd, pointer, 64)
                    assert got == -1 or (pointer % PAGE and 0 < got <= 4), f"{name} read {got} bytes into {what}"
                    assert got > 0 or ctypes.get_errno() == errno.EFAULT, f"{name} into {what}: {ctypes.get_errno()}"
                    assert _libc.write(fd, pointer, 8) == -1, f"{name} took 8 bytes from {what}"
                    told = errno.errorcode[ctypes.get_errno()]
                    assert told in ("EFAULT", "EINVAL"), f"{name} from {what}: {told}"
                    if name == "hold":
                        assert told == "EFAULT", f"{name} from {what}: {told}"


CASES = (
    all_files_are_known,
    they_show_what_is_documented,
    measurements_show_what_is_documented,
    others_are_kept_out,
    only_a_switch_is_taken,
    no_descriptor_is_taken,
    what_is_read_is_not_written,
    no_offset_helps,
    no_pointer_is_followed,
)

if __name__ == "__main__":
    ktap.main("bad_input", [(case.__name__, case) for case in CASES])
