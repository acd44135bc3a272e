"""A network behind the protocol without a process or gRPC: its client's bytes go to a session at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from cosim.errors import ProtocolError
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.client_session import ClientSession
from cosim.protocol.session import ServerConfig, Session
from cosim.protocol.settings import FailurePolicy, Target
from cosim.protocol.v1 import network_simulator_pb2 as pb


class Loop:
    """Stands where a :class:`~cosim.protocol.connection.Connection` does. ``spoil`` may change an answer."""

    def __init__(self, served: ServerConfig, spoil: Callable[[bytes], bytes] = lambda answer: answer) -> None:
        self._served = served
        self._spoil = spoil
        self._session = Session(served)
        self._answers: deque[bytes] = deque()
        self.name = served.make().describe().name

    def open_stream(self) -> None:
        """A new session."""
        self._session = Session(self._served)
        self._answers.clear()

    def send(self, request: bytes) -> None:
        """Have it answered."""
        message = pb.SessionRequest.FromString(request)
        if message.HasField("close"):
            return
        for answer in self._session.handle(message):
            self._answers.append(self._spoil(answer.SerializeToString()))

    def receive(self, deadline_s: float | None = None) -> bytes:  # noqa: ARG002 - as Connection's
        """The next answer."""
        if not self._answers:
            raise ProtocolError("the server says nothing")
        return self._answers.popleft()

    def finish(self) -> None:
        """The end."""
        self._session.close()

    def close(self) -> None:
        """The end, too."""


def looped(served: ServerConfig, spoil: Callable[[bytes], bytes] = lambda answer: answer) -> RemoteNetwork:
    """A client whose server is in this process."""
    network = RemoteNetwork(Target(address="unix:/nowhere"), policy=FailurePolicy(recover=False))
    session: ClientSession = network.session._session
    loop: Any = Loop(served, spoil)
    session.described = served.describe()
    session._connection = loop
    return network
