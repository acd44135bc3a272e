"""The connection to a server: bytes out, bytes in, each answer within a deadline, errors by their names."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from cosim.errors import DeadlineError, NetworkError, OverloadError, ServerDiedError
from cosim.protocol import frames
from cosim.protocol.address import Tls, check_address
from cosim.protocol.refusal import error_of, reason_of
from cosim.protocol.v1 import SERVICE, VERSION
from cosim.protocol.v1 import network_simulator_pb2 as pb

_POLL_S = 0.05  # between two attempts to reach a server that is starting
_CANCEL = pb.SessionRequest(cancel=pb.Cancel()).SerializeToString()[:1]  # how such a request begins
MAX_MESSAGE_BYTES = 1 << 26  # 64 MiB; larger advances go in parts


class Connection:
    """A channel to one server, and at most one session on it.

    A stream of gRPC has no deadline for each message: a thread puts answers on a queue, the wait on that has
    one, and the stream is cancelled when it is over. Pings find peers that are gone or frozen. On one machine
    messages go over a socket beside the stream (:mod:`cosim.protocol.frames`).
    """

    def __init__(
        self,
        address: str,
        *,
        tls: Tls | None = None,
        deadline_s: float = 60.0,
        keepalive_s: float = 5.0,
        name: str = "",
    ) -> None:
        import grpc

        where = check_address(address, tls)
        self.address = where
        self.name = name or where
        self.deadline_s = deadline_s
        every = int(keepalive_s * 1000)
        options = [
            # A little more than is agreed, so that too large a message is refused by name, not by gRPC.
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES + 65536),
            ("grpc.max_send_message_length", -1),
            ("grpc.keepalive_time_ms", every),
            ("grpc.keepalive_timeout_ms", every),
            ("grpc.http2.ping_timeout_ms", every),
            # 0: any number. A server that computes for minutes sends nothing, and must still be seen to be
            # alive.
            ("grpc.http2.max_pings_without_data", 0),
            # Recovery replays a log; what gRPC sends twice by itself would be a second start of the same
            # flows.
            ("grpc.enable_retries", 0),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
            # A connection of its own for each session: one that is broken must not be another's.
            ("grpc.use_local_subchannel_pool", 1),
            # A proxy of the environment would be asked for servers on this machine.
            ("grpc.enable_http_proxy", 0),
        ]
        if tls is None:
            self._channel = grpc.insecure_channel(where, options)
        else:
            self._channel = grpc.secure_channel(where, grpc.ssl_channel_credentials(*tls.read()), options)
        self._error = grpc.RpcError
        self._call: Any = None
        self._requests: SimpleQueue[bytes | None] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._overdue = False
        self._connects = False
        self._listener: frames.Listener | None = None
        self._frames: frames.Frames | None = None

    @property
    def has_socket(self) -> bool:
        """Whether messages go over a socket beside the stream."""
        return self._frames is not None

    def describe(
        self, timeout_s: float | None = None, is_gone: Callable[[], bool] = lambda: False
    ) -> pb.DescribeResponse:
        """What is there. Waits for a server that is still starting, unless ``is_gone`` says that none is.

        Raises
        ------
        NetworkError
            As :meth:`receive`.
        """
        call = self._channel.unary_unary(
            f"/{SERVICE}/Describe",
            request_serializer=pb.DescribeRequest.SerializeToString,
            response_deserializer=pb.DescribeResponse.FromString,
        )
        version = pb.Version(major=VERSION[0], minor=VERSION[1])
        limit = self.deadline_s if timeout_s is None else timeout_s
        until = time.monotonic() + limit
        while True:  # not wait_for_ready, which would not say why it is not
            try:
                found = call(
                    pb.DescribeRequest(version=version), timeout=max(_POLL_S, until - time.monotonic())
                )
            except self._error as error:
                named = self._named(error, limit)
                # A port that nobody listens at may be one of a server that is still starting; a wrong
                # certificate won't mend.
                lasting = not isinstance(named, ServerDiedError) or "handshake" in named.message.lower()
                if lasting or time.monotonic() > until or is_gone():
                    raise named from None
                time.sleep(_POLL_S)
                continue
            assert isinstance(found, pb.DescribeResponse)
            self._connects = pb.FEATURE_SOCKET in found.features
            return found

    def healthy(self, timeout_s: float = 5.0) -> bool:
        """Whether grpc.health.v1 says that the service is SERVING."""
        from grpc_health.v1 import health_pb2, health_pb2_grpc

        stub: Any = health_pb2_grpc.HealthStub(self._channel)
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(service=SERVICE), timeout=timeout_s)
        except self._error:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def open_stream(self) -> None:
        """Begin a session; one that is open is let go."""
        self.drop_stream()
        self._requests = SimpleQueue()
        self._answers = SimpleQueue()
        self._overdue = False
        call: Any = self._channel.stream_stream(
            f"/{SERVICE}/Session", request_serializer=None, response_deserializer=None
        )
        self._listener = frames.listen() if self._connects else None
        named = None if self._listener is None else [(frames.METADATA, self._listener.name)]
        self._call = call(iter(self._requests.get, None), metadata=named, wait_for_ready=False)
        of_it = self._call, self._answers, self._listener
        threading.Thread(target=self._read, args=of_it, daemon=True).start()

    def send(self, request: bytes) -> None:
        """Send a serialized ``SessionRequest``."""
        if self._frames is not None and not request.startswith(_CANCEL):
            self._frames.send(request)
        else:
            self._requests.put(request)

    def receive(self, deadline_s: float | None = None) -> bytes:
        """The next serialized ``SessionResponse``.

        Raises
        ------
        DeadlineError
            It didn't come in time.
        ServerDiedError
            The stream broke: the server is gone, or doesn't answer pings.
        NetworkError
            The server's own error, by its name.
        """
        limit = self.deadline_s if deadline_s is None else deadline_s
        until = time.monotonic() + limit
        try:
            answer = self._frames.receive(limit) if self._frames is not None else None
            if answer is None:  # where the socket ended the stream says why, which may be late, too
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                answer = self._answers.get(timeout=left)
        except (Empty, TimeoutError):
            # Cancelling ends the stream with an error of its own: whoever reads that is told the deadline
            # instead.
            self._overdue = True
            self._call.cancel()
            raise self._late(limit) from None
        except OverloadError as error:
            raise OverloadError(f"{self.name}: {error.message}") from None
        if isinstance(answer, bytes):
            if self._listener is not None and self._frames is None:
                # A server that was told the name has connected before its first answer, or won't.
                self._listener.accept(MAX_MESSAGE_BYTES)
                self._frames = self._listener.frames
            return answer
        self._answers.put(answer)  # whoever asks again is told the same
        if answer is None:
            raise ServerDiedError(f"{self.name} ended the session without being asked to")
        raise self._named(answer, limit)

    def finish(self) -> None:
        """Close the session and wait for the server's end of it."""
        if self._call is None:
            return
        self._requests.put(pb.SessionRequest(close=pb.Close()).SerializeToString())
        self._requests.put(None)
        self._end_socket()
        with contextlib.suppress(Empty):
            self._answers.get(timeout=min(self.deadline_s, 5.0))
        self.drop_stream()

    def drop_stream(self) -> None:
        """Break the session off."""
        if self._call is not None:
            self._requests.put(None)
            self._end_socket()
            self._call.cancel()
            self._call = None

    def _end_socket(self) -> None:
        if self._listener is not None:
            self._listener.end()
            if self._frames is not None:
                self._frames.close()
            self._listener = self._frames = None

    def close(self) -> None:
        """Let go of everything."""
        self.drop_stream()
        self._channel.close()

    def _read(self, call: Any, answers: SimpleQueue[Any], listener: frames.Listener | None) -> None:
        """Take answers as they come, then the end (None) or the error: a signal that interrupts a wait on the
        queue leaves the stream as it is, where gRPC's own wait can't be begun again.
        """
        try:
            for answer in call:
                answers.put(answer)
            answers.put(None)
        except self._error as error:
            answers.put(error)
        if listener is not None:
            listener.end()

    def _late(self, limit_s: float) -> DeadlineError:
        return DeadlineError(f"{self.name} did not answer within {limit_s:g} s")

    def _named(self, error: Any, limit_s: float) -> NetworkError:
        import grpc

        if self._overdue:
            return self._late(limit_s)
        reason, message, _ = reason_of(error)
        if reason:
            return error_of(reason, message, self.name)
        code = error.code()
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return self._late(limit_s)
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            return OverloadError(f"{self.name}: {message}")
        return ServerDiedError(f"{self.name} is gone: {code.name}: {message}")
