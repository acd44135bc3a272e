"""Serving a network simulator: any :class:`~cosim.network.simulator.NetworkSimulator`, over gRPC."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from google.protobuf.message import DecodeError

from cosim.errors import CosimError, LaunchError
from cosim.protocol import frames
from cosim.protocol.address import Tls, check_address
from cosim.protocol.refusal import Refusal, refusal_of, to_status
from cosim.protocol.session import GONE, ServerConfig, Session
from cosim.protocol.unix_socket import SocketFile
from cosim.protocol.v1 import SERVICE
from cosim.protocol.v1 import network_simulator_pb2 as pb

_END = None


class Server:
    """A gRPC server of one kind of network. ``address`` is where it really listens.

    ``make_session`` makes the state of a new stream; another one than
    :class:`~cosim.protocol.session.Session` is for servers that misbehave on purpose.
    """

    def __init__(
        self,
        served: ServerConfig,
        address: str,
        *,
        tls: Tls | None = None,
        make_session: Callable[[ServerConfig], Session] = Session,
    ) -> None:
        import grpc

        self._served = served
        self._make_session = make_session
        self._sessions = threading.BoundedSemaphore(served.max_sessions)
        where = check_address(address, tls)
        self._file = SocketFile(Path(where.removeprefix("unix:"))) if where.startswith("unix:") else None
        # One more than sessions: a stream too many must be told so; and some for the short calls.
        self._pool = ThreadPoolExecutor(served.max_sessions + 4, thread_name_prefix="cosim-server")
        room = served.max_message_bytes + 65536
        self._server = grpc.server(
            self._pool,
            options=[
                ("grpc.max_receive_message_length", room),
                ("grpc.max_send_message_length", room),
                ("grpc.so_reuseport", 0),  # a second server on a port must fail, not share it
                # Clients ping during a call, to find a frozen server: gRPC would take that for an attack.
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", 1000),
                ("grpc.http2.max_ping_strikes", 0),
            ],
        )
        self._add_calls()
        self._add_health()
        bound = where if self._file is None else f"unix:{self._file.bound}"
        try:
            port = self._bind(bound, tls)
        except RuntimeError as error:
            raise LaunchError(f"can't listen on {address!r}: {error}") from error
        if self._file is not None:
            self._file.publish()
        host = where if where.startswith("unix:") else where.rpartition(":")[0]
        self.address = where if where.startswith("unix:") else f"{host}:{port}"

    def _add_calls(self) -> None:
        import grpc

        describe = grpc.unary_unary_rpc_method_handler(
            self._describe, pb.DescribeRequest.FromString, pb.DescribeResponse.SerializeToString
        )
        session = grpc.stream_stream_rpc_method_handler(
            self._session, pb.SessionRequest.FromString, pb.SessionResponse.SerializeToString
        )
        calls = grpc.method_handlers_generic_handler(SERVICE, {"Describe": describe, "Session": session})
        self._server.add_generic_rpc_handlers((calls,))

    def _add_health(self) -> None:
        from grpc_health.v1 import health, health_pb2, health_pb2_grpc

        serving = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(serving, self._server)
        for name in ("", SERVICE):
            serving.set(name, health_pb2.HealthCheckResponse.SERVING)

    def _bind(self, where: str, tls: Tls | None) -> int:
        import grpc

        if tls is None:
            return int(self._server.add_insecure_port(where))
        roots, key, certificate = tls.read()
        if key is None or certificate is None:
            raise LaunchError("a server with TLS needs a key and a certificate")
        made = grpc.ssl_server_credentials([(key, certificate)], roots, require_client_auth=roots is not None)
        return int(self._server.add_secure_port(where, made))

    def start(self) -> Server:
        """Take calls."""
        self._server.start()
        return self

    def stop(self, grace_s: float = 0.0) -> None:
        """Take no more calls; sessions have ``grace_s`` to end."""
        self._server.stop(grace_s).wait()
        if self._file is not None:
            self._file.remove()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- calls ---------------------------------------------------------------------------------------

    def _describe(self, request: pb.DescribeRequest, context: Any) -> pb.DescribeResponse:
        del request, context
        return self._make_session(self._served).described

    def _session(self, requests: Iterator[pb.SessionRequest], context: Any) -> Iterator[pb.SessionResponse]:
        if not self._sessions.acquire(blocking=False):
            most = self._served.max_sessions
            context.abort_with_status(
                to_status(Refusal("OVERLOADED", f"all of {most} sessions are open", limit=most))
            )
        session = self._make_session(self._served)
        queue: SimpleQueue[pb.SessionRequest | None] = SimpleQueue()
        named = dict(context.invocation_metadata()).get(frames.METADATA, "")
        beside = session.connect(str(named))
        reader = threading.Thread(target=_read, args=(requests, session, queue, beside), daemon=True)
        reader.start()
        try:
            while (request := queue.get()) is not _END and not request.HasField("close"):
                yield from session.handle(request)
                while beside is not None and (raw := beside.receive()) is not None:
                    for answer in session.handle(_request(raw)):
                        beside.send(answer.SerializeToString())
        except Refusal as refusal:
            context.abort_with_status(to_status(refusal))
        except (CosimError, OSError, RuntimeError, AssertionError) as error:
            context.abort_with_status(to_status(refusal_of(error)))
        finally:
            if beside is not None:
                beside.close()
            session.close()
            self._sessions.release()


def _request(raw: bytes) -> pb.SessionRequest:
    try:
        return pb.SessionRequest.FromString(raw)
    except DecodeError:
        raise Refusal("STATE", f"{len(raw)} bytes that are no SessionRequest", request="") from None


def _read(
    requests: Iterator[pb.SessionRequest],
    session: Session,
    queue: SimpleQueue[Any],
    beside: frames.Frames | None,
) -> None:
    """Pass requests on; a cancel overtakes."""
    try:
        for request in requests:
            if request.HasField("cancel"):
                session.cancel(request.cancel.sequence)
            else:
                queue.put(request)
    except Exception:  # grpc raises a bare one when the client went away
        session.cancel(GONE)
    queue.put(_END)
    if beside is not None:
        beside.end()


def run_server(
    served: ServerConfig,
    address: str,
    *,
    tls: Tls | None = None,
    make_session: Callable[[ServerConfig], Session] = Session,
) -> None:
    """Serve until SIGTERM or SIGINT; says ``LISTENING address`` on standard output."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server = Server(served, address, tls=tls, make_session=make_session).start()
    sys.stdout.write(f"LISTENING {server.address}\n")
    sys.stdout.flush()
    stop.wait()
    server.stop()
