"""What a server of cosim's protocol in Python needs, whatever it simulates: transport, refusals, digest.

It needs grpcio, grpcio-health-checking, grpcio-status and the messages generated from the .proto; nothing of
cosim. A session is made of ``Open``, and has a method for each further request, named as its field.
"""

from __future__ import annotations

import argparse
import math
import signal
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from cosim.protocol.v1 import network_simulator_pb2 as pb

SERVICE = "cosim.protocol.v1.NetworkSimulatorService"
M64, G = (1 << 64) - 1, 0x9E3779B97F4A7C15
CODES = {
    "INVALID_OPEN": "INVALID_ARGUMENT",
    "INVALID_FLOWS": "INVALID_ARGUMENT",
    "OVERLOADED": "RESOURCE_EXHAUSTED",
}
"""gRPC's status for a reason; all others: FAILED_PRECONDITION."""


class Refused(Exception):  # noqa: N818 - an answer
    """Ends the stream with a reason of the protocol, and a text for people."""


def require(condition: object, reason: str, text: str) -> None:
    if not condition:
        raise Refused(reason, text)


def rows(message: Any, count: int, **columns: int | None) -> Iterator[tuple[Any, ...]]:
    """Columns, row by row. Where there is a default, a column may also have one entry for all, or none."""
    found = []
    for name, default in columns.items():
        values = list(getattr(message, name))
        if default is not None and len(values) < 2:
            values = (values or [default]) * count
        require(len(values) == count, "INVALID_FLOWS", f"{name}: {len(values)} entries for {count} rows")
        found.append(values)
    return zip(*found, strict=True)


def mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & M64
    return x ^ (x >> 31)


def add_to(digest: pb.Digest, high: int, low: int, time_ps: int) -> None:
    """Of a completion."""
    state = mix(mix(mix((high + G) & M64) + low + G & M64) + time_ps + G & M64)
    digest.a, digest.b = digest.a + state & M64, digest.b + mix(state ^ G) & M64


def check_open(asked: pb.Open, there: pb.DescribeResponse) -> None:
    """Never less than was asked: what the description doesn't claim is refused."""
    require(asked.version.major == there.version.major, "VERSION", "another version is spoken here")
    for one in asked.required_features:
        require(one in there.features, "FEATURE_MISSING", pb.Feature.Name(one))
    kind = pb.RoutingKind.Name(asked.routing.kind).removeprefix("ROUTING_KIND_")
    routing = {"GIVEN": pb.FEATURE_GIVEN_PATHS, "ECMP": pb.FEATURE_ECMP, "SPRAY": pb.FEATURE_SPRAY}
    require(routing.get(kind) in there.features, "INVALID_OPEN", f"routing: {kind}")
    claimed = {
        "queue": asked.queue.discipline in there.queue_disciplines,
        "transport": asked.transport.name in there.transports,
        "ecn": pb.FEATURE_ECN in there.features,
        "link_events": pb.FEATURE_LINK_EVENTS in there.features,
        "options": all(key in there.options for key in asked.options),
    }
    for field, _ in asked.ListFields():
        require(claimed.get(field.name, True), "INVALID_OPEN", f"{field.name}: not what was asked for")


def links_of(there: pb.Topology) -> list[tuple[int, int, float, int]]:
    """Source, destination, rate and latency of each link."""
    columns = (there.link_src, there.link_dst, there.link_rate_bps, there.link_latency_ps)
    links = list(zip(*columns, strict=False))
    sound = all(len(one) == len(links) for one in columns)
    sound = sound and max(there.num_endpoints - 1, *columns[0], *columns[1]) < len(there.node_names)
    sound = sound and all(0 < rate < math.inf and latency >= 0 for _, _, rate, latency in links)
    require(sound, "INVALID_OPEN", "topology: its columns, nodes, rates or latencies")
    return links


def paths_of(given: pb.Paths, links: list[tuple[int, int, float, int]]) -> Iterator[tuple[Any, list[int]]]:
    """The path of each (source, destination, channel)."""
    low = 0
    for src, dst, channel, high in rows(given, len(given.src), src=None, dst=None, channel=None, end=None):
        path = list(given.link[low:high])
        sound = 0 < len(path) == high - low and max(path) < len(links)
        nodes = [links[link][:2] for link in path] if sound else []
        sound = [src, *(to for _, to in nodes)] == [*(by for by, _ in nodes), dst] and sound
        require(sound, "INVALID_FLOWS", f"{path} is no path from {src} to {dst}")
        low = high
        yield (src, dst, channel), path


def session(new: Callable[[pb.Open], Any], requests: Iterator[pb.SessionRequest]) -> Iterator[Any]:
    """One stream. What the session has no method for is refused, ``Cancel`` ignored."""
    state, sequence, more = None, 0, False
    for request in requests:
        kind = request.WhichOneof("request")
        if kind == "close":
            return
        if state is None:
            require(kind == "open", "STATE", f"{kind} before open")
            state = new(request.open)
            yield pb.SessionResponse(opened=pb.Opened(credit=state.credit))
        elif kind != "cancel" or hasattr(state, kind):
            known = kind != "open" and hasattr(state, str(kind))
            require(known and (kind == "advance" or not more), "STATE", f"{kind}, which is not taken now")
            if kind == "advance":
                sequence, more = sequence + (not more), request.advance.more
                said = request.advance.sequence
                require(said == sequence, "SEQUENCE", f"{said}; {sequence} is next")
            yield from getattr(state, kind)(getattr(request, kind))


def made(description: pb.DescribeResponse, new: Callable[[pb.Open], Any], address: str) -> tuple[Any, str]:
    """A server, and its address: with the port that was picked, of ``host:0``."""

    def answer(requests: Iterator[pb.SessionRequest], context: Any) -> Iterator[pb.SessionResponse]:
        try:
            yield from session(new, requests)
        except Refused as refused:
            reason, text = refused.args
            detail = any_pb2.Any()
            detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="cosim.protocol.v1"))
            code = getattr(grpc.StatusCode, CODES.get(reason, "FAILED_PRECONDITION")).value[0]
            status = status_pb2.Status(code=code, message=text, details=[detail])
            context.abort_with_status(rpc_status.to_status(status))

    limits = description.limits
    options = {
        "grpc.max_receive_message_length": limits.max_message_bytes + 65536,
        "grpc.max_send_message_length": limits.max_message_bytes + 65536,
        "grpc.http2.min_ping_interval_without_data_ms": 1000,
        "grpc.http2.max_ping_strikes": 0,
    }
    pool = futures.ThreadPoolExecutor(limits.max_sessions + 2)  # two for the short calls
    server = grpc.server(pool, options=[*options.items()])
    describe = grpc.unary_unary_rpc_method_handler(
        lambda *_: description, pb.DescribeRequest.FromString, pb.DescribeResponse.SerializeToString
    )
    stream = grpc.stream_stream_rpc_method_handler(
        answer, pb.SessionRequest.FromString, pb.SessionResponse.SerializeToString
    )
    handlers = grpc.method_handlers_generic_handler(SERVICE, {"Describe": describe, "Session": stream})
    server.add_generic_rpc_handlers((handlers,))
    serving = health.HealthServicer()
    for name in ("", SERVICE):
        serving.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(serving, server)
    port = server.add_insecure_port(address)
    return server, address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"


def serve(description: pb.DescribeResponse, new: Callable[[pb.Open], Any]) -> None:
    """The command: ``--address``, ``LISTENING``, and SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    server, where = made(description, new, parser.parse_args().address)
    server.start()
    signal.signal(signal.SIGTERM, lambda *_: server.stop(0))
    print("LISTENING", where, flush=True)
    server.wait_for_termination()
