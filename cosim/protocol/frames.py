"""A session's messages over a Unix socket, where both sides run on one machine, as one user.

A message over a stream of gRPC wakes several threads on each side. So a client listens on a socket and
tells its name with the call. A server that can reach it connects, and what follows ``Open`` goes there and
back: the same messages, each behind its length (u32, little-endian). The stream stays, for ``Cancel``,
``Close``, errors and pings: it tells of a peer that is gone or frozen. Where nobody connects everything goes
over the stream.

The name is an abstract one (``unix(7)``): it has no file that a process which is killed could leave behind.
Whoever else may reach it is told apart by the kernel, which says whose process the other side is.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import struct
import sys

from cosim.errors import OverloadError

METADATA = "cosim-socket"
"""The name's key in the metadata of a ``Session`` call."""
_NAME = re.compile(r"cosim-[0-9a-f]{32}")
_CREDENTIALS = struct.Struct("iII")  # of the process, the user and the group
_LENGTH = struct.Struct("<I")
_TIME = struct.Struct("@ll")  # seconds and microseconds
_PIECE = 1 << 16
_ROOM = 1 << 16  # a little more than is agreed is taken, so that whose message it is can refuse it by name


class Frames:
    """One end of a connected socket. ``most`` is the longest message that is taken, in bytes."""

    def __init__(self, connected: socket.socket, most: int) -> None:
        self._socket = connected
        self._most = most + _ROOM
        self._limit_s: float | None = None
        self._read = memoryview(bytearray(_PIECE))
        self._begin = self._end = 0  # of what was read and is not taken yet

    def send(self, message: bytes) -> None:
        """Send a message; one that doesn't get there is noticed by who waits for its answer."""
        try:
            self._socket.sendall(_LENGTH.pack(len(message)) + message)
        except OSError:
            self.end()

    def receive(self, limit_s: float | None = None) -> bytes | None:
        """The next message; None where none will come. ``limit_s``: seconds without a byte.

        Raises
        ------
        TimeoutError
            Nothing came in time.
        OverloadError
            It is longer than agreed.
        """
        if limit_s != self._limit_s:  # a system call
            self._wait_for(limit_s)
        need = _LENGTH.size
        while True:
            read, begin = self._read, self._begin
            here = self._end - begin
            if here >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(read, begin)
                if length > self._most:
                    raise OverloadError(f"a message of {length} bytes; at most {self._most} fit")
                need = _LENGTH.size + length
                if here >= need:
                    self._begin = begin + need if here > need else 0
                    self._end = self._end if here > need else 0
                    return bytes(read[begin + _LENGTH.size : begin + need])
            if begin + need > len(read) or self._end == len(read):
                self._read = memoryview(bytearray(max(_PIECE, need)))
                self._read[:here] = read[begin : self._end]
                self._begin, self._end = 0, here
            try:
                came = self._socket.recv_into(self._read[self._end :])
            except ConnectionError:
                return None
            except BlockingIOError:
                raise TimeoutError from None
            if not came:
                return None
            self._end += came

    def _wait_for(self, limit_s: float | None) -> None:
        """Have the system itself bound how long a call may take: asking it first whether one would wait is a
        call more, each time.
        """
        limit = 0 if limit_s is None else max(1, round(limit_s * 1e6))  # microseconds; 0 is none
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._socket.setsockopt(socket.SOL_SOCKET, option, _TIME.pack(*divmod(limit, 1_000_000)))
        self._limit_s = limit_s

    def end(self) -> None:
        """Nothing comes or goes any more; whoever waits is told. From any thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the socket: nobody waits for it any more."""
        self.end()
        self._socket.close()


class Listener:
    """Where the server of one session may connect. ``name`` is what it is told; ``frames`` the connection,
    None before :meth:`accept`, and where nobody connected.
    """

    def __init__(self) -> None:
        self.name = f"cosim-{secrets.token_hex(16)}"
        self.frames: Frames | None = None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(f"\0{self.name}")
        self._socket.listen(1)
        self._socket.setblocking(False)

    def accept(self, most: int) -> None:
        """Take what has connected, unless it is another user's. Nobody can connect afterwards."""
        with self._socket, contextlib.suppress(OSError):
            self.frames = _ours(self._socket.accept()[0], most)

    def end(self) -> None:
        """Nobody can connect, and nothing comes or goes any more. From any thread."""
        self._socket.close()
        if self.frames is not None:
            self.frames.end()


def can_connect() -> bool:
    """Whether there are abstract sockets here."""
    return sys.platform == "linux"


def listen() -> Listener | None:
    """A listener; None where there are no abstract sockets, or none may be made."""
    with contextlib.suppress(OSError):
        return Listener() if can_connect() else None
    return None


def connect(name: str, most: int) -> Frames | None:
    """Connect to a listener; None where it can't be reached, or is another user's."""
    if not can_connect() or not _NAME.fullmatch(name):
        return None
    connected = socket.socket(socket.AF_UNIX)
    try:
        connected.connect(f"\0{name}")
    except OSError:  # another machine, or a container with a network of its own
        connected.close()
        return None
    return _ours(connected, most)


def _ours(connected: socket.socket, most: int) -> Frames | None:
    """The connection, if the other side is a process of this user."""
    if sys.platform == "linux":
        raw = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(raw)[1] == os.geteuid():
            return Frames(connected, most)
    connected.close()
    return None
