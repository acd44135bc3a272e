"""Messages over a socket beside the stream: the same run, and the stream where there can be no socket."""

import os
import socket
import struct
import sys
from collections.abc import Callable

import pytest

from cosim.errors import OverloadError, RefusedError
from cosim.protocol import connection, frames
from cosim.protocol.client import RemoteNetwork, connect, launch
from cosim.protocol.connection import Connection
from cosim.protocol.server import Server
from cosim.protocol.v1 import network_simulator_pb2 as pb
from tests.lab.fuzz.wire import a_conversation
from tests.protocol.small_run import GOOD, run

Serve = Callable[..., Server]
NAME = "cosim-" + "0" * 32
SOCKETS = pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
pytestmark = SOCKETS


def pair(most: int = 1 << 20) -> tuple[frames.Frames, socket.socket]:
    ours, theirs = socket.socketpair()
    return frames.Frames(ours, most), theirs


def ways(network: RemoteNetwork, monkeypatch: pytest.MonkeyPatch) -> tuple[str, bool]:
    """The digest of a run, and whether answers came over a socket."""
    count = 0
    receive = frames.Frames.receive

    def counted(self: frames.Frames, limit_s: float | None = None) -> bytes | None:
        nonlocal count
        message = receive(self, limit_s)
        count += message is not None and limit_s is not None  # a server waits for ever
        return message

    with monkeypatch.context() as patch:
        patch.setattr(frames.Frames, "receive", counted)
        return run(network, release="engine").digest, count > 0


def test_messages_go_over_the_socket_and_the_run_is_the_same(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = run().digest
    assert ways(launch(GOOD), monkeypatch) == (right, True)
    with monkeypatch.context() as patch:  # a client of before, or of a system without such sockets
        patch.setattr(frames, "listen", lambda: None)
        assert ways(connect(serve().address), monkeypatch) == (right, False)


def test_a_server_that_cannot_reach_the_client_answers_over_the_stream(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine behind a tunnel, a container: nobody listens at that name there."""
    monkeypatch.setattr(socket.socket, "connect", _unreachable)
    assert ways(connect(serve().address), monkeypatch) == (run().digest, False)


def _unreachable(_: socket.socket, __: str) -> None:
    raise ConnectionRefusedError


def test_another_users_process_is_not_talked_to(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert ways(connect(serve().address), monkeypatch) == (run().digest, False)


@pytest.mark.parametrize("name", ["", "cosim-", "/tmp/socket", NAME, NAME + "0", f"{NAME[:-1]}\n"])
def test_a_name_that_nobody_made_is_not_connected_to(name: str) -> None:
    assert frames.connect(name, 1) is None


def test_nobody_else_connects_after_the_server() -> None:
    listener = frames.Listener()
    server = frames.connect(listener.name, 64)
    listener.accept(64)
    assert server is not None
    assert listener.frames is not None
    server.send(b"here")
    assert listener.frames.receive(1.0) == b"here"
    assert frames.connect(listener.name, 64) is None
    listener.end()
    assert server.receive(1.0) is None
    server.close()
    listener.frames.close()


def test_a_message_in_pieces_and_two_at_once_come_whole() -> None:
    ours, theirs = pair()
    message = os.urandom(70_000)
    raw = struct.pack("<I", len(message)) + message + struct.pack("<I", 0) + struct.pack("<I", 1) + b"x"
    for at in range(0, len(raw), 9_999):
        theirs.sendall(raw[at : at + 9_999])
    assert [ours.receive(1.0) for _ in range(3)] == [message, b"", b"x"]
    ours.close()
    theirs.close()


@pytest.mark.parametrize("sent", [b"", b"\x05", b"\x05\0\0\0half"])
def test_what_breaks_off_is_no_message(sent: bytes) -> None:
    ours, theirs = pair()
    theirs.sendall(sent)
    with pytest.raises(TimeoutError):
        ours.receive(0.01)
    theirs.close()
    assert ours.receive(1.0) is None
    ours.close()


def test_a_length_that_nobody_agreed_to_is_refused() -> None:
    ours, theirs = pair(most=1)
    theirs.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(OverloadError, match="4294967295 bytes"):
        ours.receive(1.0)
    ours.close()
    theirs.close()


def test_bytes_that_are_no_request_are_refused_by_name(serve: Serve) -> None:
    client = Connection(serve().address)
    client.describe()
    client.open_stream()
    client.send(a_conversation("engine")[0])
    client.receive()
    assert client.has_socket
    client.send(b"\xff")
    with pytest.raises(RefusedError, match="no SessionRequest"):
        client.receive()
    client.close()


def test_a_cancel_goes_over_the_stream() -> None:
    """A server that is busy reads nothing else."""
    asked = pb.SessionRequest(cancel=pb.Cancel(sequence=3)).SerializeToString()
    others = [pb.SessionRequest(**{name: {}}) for name in ("advance", "statistics", "peek", "sample")]
    assert asked.startswith(connection._CANCEL)
    assert not any(one.SerializeToString().startswith(connection._CANCEL) for one in others)
