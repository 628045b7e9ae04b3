# SPDX-License-Identifier: GPL-2.0
"""A drive with a volatile write cache, for a guest whose power is cut.

An image of QEMU cannot do this: what QEMU has written is in the host's page cache and survives QEMU, flushed or
not. So the drive is a server of the NBD protocol, which knows of every write whether a flush has followed. When
power is cut, each sector of what was written since the last flush is either old or new, by chance: writes are
lost, torn and reordered, as a drive may do. The drive offers no FUA. A guest's driver then sends a flush after such
a write instead.

It implements only as much of the protocol (doc/proto.md of NetworkBlockDevice/nbd) as QEMU needs.
"""

import contextlib
import os
import random
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

SECTOR = 512

OPTION_MAGIC = b"IHAVEOPT"
FIXED_NEWSTYLE, NO_ZEROES = 1, 2
OPT_GO = 7
REPLY_MAGIC = 0x3E889045565A9
REP_ACK, REP_INFO, REP_UNSUPPORTED = 1, 3, 0x80000001
INFO_EXPORT = 0
HAS_FLAGS, SEND_FLUSH = 1, 4

REQUEST = struct.Struct(">IHHQQI")
REQUEST_MAGIC = 0x25609513
READ, WRITE, DISCONNECT, FLUSH = range(4)
ANSWER = struct.Struct(">IIQ")
ANSWER_MAGIC = 0x67446698


class Drive:
    """The bytes as they are read now, and how to get back to those that are sure."""

    def __init__(self, size: int, folder: Path) -> None:
        self.size = size
        self._unflushed: list[tuple[int, bytes, bytes]] = []
        """Of each write its place, the bytes before and the bytes since."""
        self._on = True
        self._lock = threading.Lock()
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)
        self._file.truncate(size)
        self._socket = folder / "drive"

    def read(self, offset: int, length: int) -> bytes:
        """The bytes as they are now."""
        return os.pread(self._file.fileno(), length, offset)

    def write(self, offset: int, data: bytes) -> None:
        """A write of whole sectors, which the cache takes."""
        self._unflushed.append((offset, self.read(offset, len(data)), data))
        os.pwrite(self._file.fileno(), data, offset)

    def flush(self) -> None:
        """All that was written is sure from now on."""
        self._unflushed.clear()

    def try_off(self) -> bool:
        """Switch off, for the rest of this time of being plugged in, if that would lose anything."""
        with self._lock:
            self._on = self._on and not self._unflushed
            return not self._on

    def forget(self, chance: random.Random) -> tuple[int, int]:
        """Lose what no flush has made sure of; how many sectors the cache held, and how many are lost."""
        if not self._unflushed:
            return 0, 0
        held = lost = 0
        doomed = chance.choice(self._unflushed)
        for offset, old, _ in reversed(self._unflushed):
            os.pwrite(self._file.fileno(), old, offset)
        for write in self._unflushed:
            offset, _, new = write
            # About half of them are torn. One is lost as a whole, or it would not have been a cut.
            odds = 0.0 if write is doomed else chance.choice((0.0, 0.5, 0.5, 1.0))
            for start in range(0, len(new), SECTOR):
                held += 1
                if chance.random() < odds:
                    os.pwrite(self._file.fileno(), new[start : start + SECTOR], offset + start)
                else:
                    lost += 1
        self._unflushed.clear()
        return held, lost

    @contextlib.contextmanager
    def plugged_in(self) -> Iterator[str]:
        """Serve QEMUs, one after the other, which get the drive as the file of this name."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self._socket))
            listener.listen()
            self._on = True
            server = threading.Thread(target=self._serve, args=[listener], daemon=True)
            server.start()
            try:
                yield f"nbd+unix:///?socket={self._socket}"
            finally:
                # Wakes who still waits for a QEMU that never came.
                with contextlib.suppress(OSError):
                    listener.shutdown(socket.SHUT_RDWR)
                server.join()
                self._socket.unlink()

    def _serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer, contextlib.suppress(OSError, EOFError):
                    self._negotiate(peer)
                    while True:
                        self._answer(peer)

    def _negotiate(self, peer: socket.socket) -> None:
        """Agree on the one export that there is, or wait for the peer to go."""
        peer.sendall(b"NBDMAGIC" + OPTION_MAGIC + struct.pack(">H", FIXED_NEWSTYLE | NO_ZEROES))
        _receive(peer, 4)
        option = None
        while option != OPT_GO:
            _, option, length = struct.unpack(">8sII", _receive(peer, 16))
            _receive(peer, length)
            replies = [(REP_UNSUPPORTED, b"")]
            if option == OPT_GO:
                export = struct.pack(">HQH", INFO_EXPORT, self.size, HAS_FLAGS | SEND_FLUSH)
                replies = [(REP_INFO, export), (REP_ACK, b"")]
            for kind, data in replies:
                peer.sendall(struct.pack(">QIII", REPLY_MAGIC, option, kind, len(data)) + data)

    def _answer(self, peer: socket.socket) -> None:
        """Do what one request asks for; EOFError when there will be no other."""
        magic, _, kind, cookie, offset, length = REQUEST.unpack(_receive(peer, REQUEST.size))
        if magic != REQUEST_MAGIC or kind not in (READ, WRITE, FLUSH):
            raise EOFError
        written = _receive(peer, length) if kind == WRITE else b""
        data = b""
        with self._lock:
            # Without power there is no answer, but no error either.
            if not self._on:
                return
            if kind == READ:
                data = self.read(offset, length)
            elif kind == WRITE:
                self.write(offset, written)
            else:
                self.flush()
        peer.sendall(ANSWER.pack(ANSWER_MAGIC, 0, cookie) + data)


def _receive(peer: socket.socket, length: int) -> bytes:
    """So many bytes; EOFError when the peer has gone."""
    data = peer.recv(length, socket.MSG_WAITALL) if length else b""
    if len(data) < length:
        raise EOFError
    return data
