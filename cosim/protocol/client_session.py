"""A session on the client's side: the server found or started, one stream, errors by their names."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from google.protobuf.message import DecodeError

from cosim.errors import (
    DeadlineError,
    DivergenceError,
    LaunchError,
    NetworkError,
    ProtocolError,
    RemoteError,
    ServerDiedError,
    VersionError,
)
from cosim.protocol.advance_answer import AdvanceAnswer
from cosim.protocol.advance_parts import numbered
from cosim.protocol.connection import MAX_MESSAGE_BYTES, Connection
from cosim.protocol.launcher import ServerProcess
from cosim.protocol.settings import FailurePolicy, Target
from cosim.protocol.v1 import VERSION
from cosim.protocol.v1 import network_simulator_pb2 as pb


class ClientSession:
    """Connects to a server, or starts one; opens a stream and exchanges advances over it.

    ``described`` is what the server said of itself, None before it was asked. A session that was let go
    (:meth:`disconnect`) can be opened again: on a new server of the same build.
    """

    def __init__(self, target: Target, policy: FailurePolicy) -> None:
        self._target = target
        self._policy = policy
        self._connection: Connection | None = None
        self._sequence = 0
        self._answer = AdvanceAnswer()
        self.process: ServerProcess | None = None
        self.described: pb.DescribeResponse | None = None

    @property
    def name(self) -> str:
        """How errors call the server."""
        if self.described is not None:
            return self.described.simulator
        return self._target.name or self._target.address or " ".join(self._target.command[:1])

    @property
    def starts(self) -> bool:
        """Whether the server is started here."""
        return bool(self._target.command)

    @property
    def most_bytes(self) -> int:
        """Largest message that both sides take."""
        return min(MAX_MESSAGE_BYTES, self.describe().limits.max_message_bytes or MAX_MESSAGE_BYTES)

    def describe(self) -> pb.DescribeResponse:
        """What the server says of itself; connects where nobody did.

        Raises
        ------
        LaunchError
            There is no server, or it doesn't start.
        VersionError, DivergenceError
            It speaks another version; it is another build than the one that was described before.
        """
        if self.described is None:
            self._connect()
        assert self.described is not None
        return self.described

    def open(self, request: bytes) -> pb.Opened:
        """Open a stream, on a new connection where there is none.

        ``request`` is a serialized ``SessionRequest``.

        Raises
        ------
        NetworkError
            The server refuses; its last words are with the error.
        """
        if self._connection is None:
            self._connect()
        connection = self.connection()
        # A session counts its advances from one, on the server's side too.
        connection.open_stream()
        self._sequence = 0
        connection.send(request)
        try:
            answer = self._read(self._receive(self._policy.start_s))
        except RemoteError as error:
            error.server_log = self.server_log()
            raise
        if not answer.HasField("opened"):
            raise ProtocolError(f"{self.name} answered Open with {answer.WhichOneof('response')}")
        return answer.opened

    def exchange(self, parts: Sequence[bytes]) -> AdvanceAnswer:
        """Send an advance and wait for its answer, which is good until the next.

        Raises
        ------
        NetworkError
            As :meth:`~cosim.protocol.connection.Connection.receive`; or the answer is to something else.
        """
        connection = self.connection()
        sequence = self._sequence = self._sequence + 1
        # The number is put into bytes that were serialized before: a replay sends the same parts with other
        # numbers.
        for part in parts:
            connection.send(numbered(part, sequence))
        answer = self._answer
        answer.begin()
        while True:
            try:
                raw = self._receive()
            except KeyboardInterrupt:
                self._cancel(sequence)
                raise
            # An answer to another advance must not be taken for this one's.
            if not answer.read(raw) or answer.sequence != sequence:
                response = self._read(raw)
                raise ProtocolError(
                    f"{self.name} breaks the protocol: it answered advance {sequence} with "
                    f"{response.WhichOneof('response')} {response.advanced.sequence or ''}".rstrip()
                )
            if not answer.has_more:
                return answer

    def ask(self, request: pb.SessionRequest) -> pb.SessionResponse:
        """Send what leaves the session as it is, and wait for the answer."""
        self.connection().send(request.SerializeToString())
        return self._read(self._receive())

    def _receive(self, deadline_s: float | None = None) -> bytes:
        """The next answer. A server that was started here and does not answer in time is as good as dead: it
        froze, whether pings found out or not, and can be replaced.
        """
        try:
            return self.connection().receive(deadline_s)
        except DeadlineError as error:
            if self.process is None:
                why = "it is frozen, or needs a longer answer_timeout"
                raise DeadlineError(f"{error.message}: {why}") from error
            raise ServerDiedError(error.message) from error

    def _read(self, answer: bytes) -> pb.SessionResponse:
        try:
            return pb.SessionResponse.FromString(answer)
        except DecodeError:
            raise ProtocolError(
                f"{self.name} breaks the protocol: it sent {len(answer)} bytes that are no SessionResponse"
            ) from None

    def connection(self) -> Connection:
        """The connection.

        Raises
        ------
        NetworkError
            The session is closed.
        """
        if self._connection is None:
            raise NetworkError(f"{self.name}: the session is closed")
        return self._connection

    def finish(self) -> None:
        """End the stream as the protocol has it, if there is one."""
        if self._connection is not None:
            with contextlib.suppress(NetworkError):
                self._connection.finish()

    def disconnect(self) -> None:
        """Let go of the connection, and end the server where it was started here."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self.process is not None:
            self.process.stop()
            self.process = None

    def server_log(self) -> str:
        """The end of what a server that was started here wrote to standard error."""
        return self.process.stderr_tail() if self.process is not None else ""

    def _connect(self) -> None:
        """Start or find the server, and have it described."""
        policy, target = self._policy, self._target
        address = target.address
        if target.command:
            self.process = self._start()
            address = self.process.address
        assert address is not None
        self._connection = Connection(
            address,
            tls=target.tls,
            deadline_s=policy.answer_s,
            # One that can't be started again is waited for as long as for any answer: it may only be slow.
            keepalive_s=policy.ping_s if target.command else policy.answer_s,
            name=target.name or address,
        )
        try:
            # Asked before anything else: whether somebody listens, and who, shows before topology is sent.
            there = self._connection.describe(policy.start_s, self._is_gone)
        except NetworkError as error:
            log, gone = self.server_log(), self._is_gone()
            self.disconnect()
            if gone:
                raise ServerDiedError(f"{self.name} is gone before it was asked", server_log=log) from error
            if self._target.command and isinstance(error, (ServerDiedError, DeadlineError)):  # it froze
                raise ServerDiedError(f"{self.name} listened, but {error.message}", server_log=log) from error
            raise LaunchError(f"no network simulator at {address}: {error}", server_log=log) from error
        try:
            self._check(there)
        except RemoteError:
            self.disconnect()
            raise
        self.described = there
        self._connection.name = there.simulator

    def _start(self) -> ServerProcess:
        """A server. One that has run before and doesn't start died; of a first one the command is wrong."""
        target = self._target
        try:
            return ServerProcess(target.command, address=target.address, timeout_s=self._policy.start_s)
        except LaunchError as error:
            if self.described is None:
                raise
            raise ServerDiedError(error.message, server_log=error.server_log) from error

    def _is_gone(self) -> bool:
        """Whether the server was started here and has ended."""
        return self.process is not None and not self.process.is_alive

    def _check(self, there: pb.DescribeResponse) -> None:
        """Refuse another version of the protocol, and another build than the one described before.

        Raises
        ------
        VersionError, DivergenceError
            Say what was found, and what would be right.
        """
        if there.version.major != VERSION[0]:
            raise VersionError(
                f"{there.simulator} speaks version {there.version.major}.{there.version.minor} "
                f"of the protocol; this is {VERSION[0]}.{VERSION[1]}"
            )
        before = self.described
        # Only the same build of a deterministic simulator gives the same completions again.
        if before is not None and (there.simulator, there.build) != (before.simulator, before.build):
            raise DivergenceError(
                f"the log is of {before.simulator} ({before.build}), "
                f"the server is {there.simulator} ({there.build})"
            )

    def _cancel(self, sequence: int) -> None:
        """Have the advance in progress stopped, and take its answer: the session can then be asked again."""
        connection = self.connection()
        connection.send(pb.SessionRequest(cancel=pb.Cancel(sequence=sequence)).SerializeToString())
        with contextlib.suppress(NetworkError):
            while self._read(connection.receive()).advanced.more:
                pass
