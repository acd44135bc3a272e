"""A network simulator behind cosim's protocol, whole: links send messages one after another, as they come.

It needs grpcio, grpcio-health-checking, grpcio-status and the messages generated from the .proto; nothing of
cosim. Paths are the client's. No other feature is claimed: no dependencies, peek, cancel or budget.
"""

from __future__ import annotations

import argparse
import heapq
import math
import signal
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from cosim.protocol.v1 import network_simulator_pb2 as pb

SERVICE = "cosim.protocol.v1.NetworkSimulatorService"
MAX_BYTES, MAX_FLOWS, MAX_SESSIONS = 1 << 22, 1 << 16, 4
DESCRIPTION = pb.DescribeResponse(
    version=pb.Version(major=1, minor=0), simulator="minimal", build="1", deterministic=True, quantum_ps=1,
    features=[pb.FEATURE_GIVEN_PATHS],
    limits=pb.Limits(max_message_bytes=MAX_BYTES, max_open_flows=MAX_FLOWS, max_sessions=MAX_SESSIONS),
)  # fmt: skip
CODES = {
    "INVALID_OPEN": "INVALID_ARGUMENT",
    "INVALID_FLOWS": "INVALID_ARGUMENT",
    "OVERLOADED": "RESOURCE_EXHAUSTED",
}
"""gRPC's status for a reason; all others: FAILED_PRECONDITION."""
Key = tuple[int, int]
Done = tuple[int, int, int]
"""A completion: id, start, time."""
Responses = Iterator[pb.SessionResponse]
M64, G = (1 << 64) - 1, 0x9E3779B97F4A7C15


class Refused(Exception):  # noqa: N818 - an answer
    """Ends the stream with a reason of the protocol."""


def require(condition: object, reason: str, text: str) -> None:
    if not condition:
        raise Refused(reason, text)


def mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & M64
    return x ^ (x >> 31)


class Simulation:
    """The event loop. Flows are rows of (key, bytes, path, reaction delay), by id."""

    def __init__(self, topology: pb.Topology) -> None:
        self.rate, self.latency = topology.link_rate_bps, topology.link_latency_ps
        self.src, self.dst = topology.link_src, topology.link_dst
        self.endpoints, nodes = topology.num_endpoints, len(topology.node_names)
        sound = len(self.rate) == len(self.latency) == len(self.src) == len(self.dst)
        sound = sound and max(self.endpoints - 1, *self.src, *self.dst) < nodes
        sound = sound and all(0 < rate < math.inf for rate in self.rate) and min(self.latency) >= 0
        require(sound, "INVALID_OPEN", "the topology's columns, nodes, rates or latencies")
        self.free = [0] * len(self.rate)  # when each link has sent what it was given
        self.link_bytes = [0] * len(self.rate)
        self.paths: dict[tuple[int, int, int], tuple[int, ...]] = {}
        self.flows: list[tuple[Key, int, tuple[int, ...], int]] = []
        self.start: dict[int, int] = {}
        self.hops: list[tuple[int, int, Key, int, int]] = []  # a heap: a message reaches its next link
        self.ends: list[tuple[int, Key, int]] = []  # a heap: a message's last byte arrives
        self.granted = self.completed = self.a = self.b = 0

    def begin(self, one: int, start: int, cause: int) -> None:
        is_new = one < len(self.flows) and one not in self.start
        require(is_new, "INVALID_FLOWS", f"flow {one} is not there, or was started")
        require(start >= self.granted, "CAUSALITY", f"a start at {start} ps; the grant is {self.granted} ps")
        self.start[one] = start
        heapq.heappush(self.hops, (start, cause, self.flows[one][0], one, 0))

    def move(self, time: int, key: Key, one: int, hop: int) -> None:
        _, size, path, _ = self.flows[one]
        if hop == len(path):  # a mark, which is there at once
            heapq.heappush(self.ends, (time, key, one))
            return
        link = path[hop]
        sent = max(time, self.free[link]) + -(-size * 8 * 10**12 // int(self.rate[link]))
        self.free[link], there = sent, sent + self.latency[link]
        self.link_bytes[link] += size
        if hop + 1 == len(path):
            heapq.heappush(self.ends, (there, key, one))
        else:
            heapq.heappush(self.hops, (there, sent, key, one, hop + 1))

    def run(self, horizon: int) -> list[Done]:
        """(id, start, time) of what completes up to where the client may react, or to the horizon."""
        require(horizon >= self.granted, "CAUSALITY", f"a horizon before the grant {self.granted} ps")
        done: list[Done] = []
        while self.hops or self.ends:
            now = min(heap[0][0] for heap in (self.hops, self.ends) if heap)
            if now > horizon:
                break
            while self.ends and self.ends[0][0] == now:  # an instant: first all completions ...
                _, (high, low), one = heapq.heappop(self.ends)
                done.append((one, self.start[one], now))
                horizon = min(horizon, now + self.flows[one][3])
                state = mix(mix(mix((high + G) & M64) + low + G & M64) + now + G & M64)
                self.a, self.b = (self.a + state) & M64, (self.b + mix(state ^ G)) & M64
            if now == horizon:  # ... then all starts; those at the grant come with the next advance
                break
            due = []
            while self.hops and self.hops[0][0] == now:
                due.append(heapq.heappop(self.hops))
            for time, _, key, one, hop in due:
                self.move(time, key, one, hop)
        self.granted, self.completed = horizon, self.completed + len(done)
        return done


class Session:
    """What one stream asks, one request after another."""

    simulation: Simulation

    def __init__(self) -> None:
        self.is_open, self.sequence, self.more, self.most_bytes = False, 0, False, MAX_BYTES

    def open(self, message: pb.Open) -> Responses:
        require(message.version.major == 1, "VERSION", "version 1 is spoken here")
        for feature in message.required_features:
            require(feature in DESCRIPTION.features, "FEATURE_MISSING", pb.Feature.Name(feature))
        asked = [name for name in ("queue", "ecn", "transport", "link_events") if message.HasField(name)]
        asked += message.options
        require(not asked, "INVALID_OPEN", f"not here: {', '.join(asked)}")
        require(message.routing.kind == pb.ROUTING_KIND_GIVEN, "INVALID_OPEN", "routing: given paths only")
        self.simulation, self.is_open = Simulation(message.topology), True
        self.most_bytes = min(MAX_BYTES, message.max_message_bytes or MAX_BYTES)
        yield pb.SessionResponse(opened=pb.Opened(credit=MAX_FLOWS))

    def advance(self, message: pb.Advance) -> Responses:
        expected = self.sequence + (not self.more)
        require(message.sequence == expected, "SEQUENCE", f"{message.sequence}; {expected} is next")
        self.sequence, self.more = expected, message.more
        self.take(message)
        if not message.more:
            yield from self.answer(self.simulation.run(message.horizon_ps))

    def take(self, message: pb.Advance) -> None:
        simulation, paths, flows = self.simulation, message.paths, message.flows
        columns = (paths.src, paths.dst, paths.channel, [0, *paths.end], paths.end)
        whole = len({*map(len, columns[:3]), len(paths.end)}) == 1 and max(paths.end, default=0) <= len(
            paths.link
        )
        require(whole, "INVALID_FLOWS", "the columns of paths")
        for src, dst, channel, low, high in zip(*columns, strict=False):
            path = tuple(paths.link[low:high])
            whole = bool(path) and max(path) < len(simulation.rate)
            ways = [(simulation.src[link], simulation.dst[link]) for link in path] if whole else []
            whole = whole and [src, *(b for _, b in ways)] == [*(a for a, _ in ways), dst]
            require(whole, "INVALID_FLOWS", f"{path} is no path from {src} to {dst}")
            simulation.paths[src, dst, channel] = path
        require(flows.count <= self.credit(), "OVERLOADED", f"{flows.count} flows; room for {self.credit()}")
        require(not flows.dependency_id, "INVALID_FLOWS", "dependencies: not claimed here")

        def column(name: str, default: int = 0) -> list[int]:
            values = getattr(flows, name)
            require(len(values) in (0, 1, flows.count), "INVALID_FLOWS", f"{len(values)} entries of {name}")
            one = values[0] if values else default
            return list(values) if len(values) == flows.count else [one] * flows.count

        names = ("key_high", "key_low", "src", "dst", "channel", "size_bytes", "reaction_delay_ps")
        for high, low, src, dst, channel, size, reaction in zip(*map(column, names), strict=True):
            require(
                min(size, reaction) >= 0, "INVALID_FLOWS", f"a size of {size} bytes, a delay of {reaction} ps"
            )
            require(max(src, dst) < simulation.endpoints, "INVALID_FLOWS", f"no endpoints {src}, {dst}")
            require(src == dst or (src, dst, channel) in simulation.paths, "NO_PATH", f"{src} to {dst}")
            path = simulation.paths[src, dst, channel] if src != dst else ()
            simulation.flows.append(((high, low), size, path, reaction))
        first = len(simulation.flows) - flows.count
        require(not flows.count or flows.first_id == first, "INVALID_FLOWS", f"first_id is not {first}")
        for k, (start, cause) in enumerate(zip(column("start_ps", -1), column("cause_ps", -1), strict=True)):
            if start >= 0:
                simulation.begin(first + k, start, start if cause < 0 else cause)
        given = message.starts
        causes = given.cause_ps or given.start_ps
        require(len(given.id) == len(given.start_ps) == len(causes), "INVALID_FLOWS", "the columns of starts")
        for one, start, cause in zip(given.id, given.start_ps, causes, strict=True):
            simulation.begin(one, start, cause)

    def credit(self) -> int:
        return MAX_FLOWS - len(self.simulation.flows) + self.simulation.completed

    def answer(self, done: list[Done]) -> Responses:
        size = max(1, (self.most_bytes - 256) // 24)
        parts = [done[k : k + size] for k in range(0, len(done), size)] or [[]]
        for part in parts:
            answer = pb.Advanced(sequence=self.sequence, more=part is not parts[-1])
            for one, start, time in part:
                answer.id.append(one)
                answer.start_ps.append(start)
                answer.time_ps.append(time)
            answer.granted_ps, answer.credit = self.simulation.granted, self.credit()
            answer.digest.a, answer.digest.b = self.simulation.a, self.simulation.b
            yield pb.SessionResponse(advanced=answer)

    def statistics(self, _: pb.StatisticsRequest) -> Responses:
        simulation = self.simulation
        found = pb.Statistics(link_bytes=simulation.link_bytes, flows_completed=simulation.completed)
        yield pb.SessionResponse(statistics=found)

    def peek(self, _: pb.PeekRequest) -> Responses:
        raise Refused("STATE", "peek is not claimed here")

    def sample(self, _: pb.SampleRequest) -> Responses:
        raise Refused("STATE", "samples are not claimed here")

    def cancel(self, _: pb.Cancel) -> Responses:
        yield from ()  # not claimed: ignored


def session(requests: Iterator[pb.SessionRequest], context: Any) -> Responses:
    """One stream, one simulation."""
    state = Session()
    try:
        for request in requests:
            kind = request.WhichOneof("request")
            if kind == "close":
                return
            between = state.more and kind != "advance"
            require(kind and (kind == "open") != state.is_open and not between, "STATE", str(kind))
            yield from getattr(state, kind)(getattr(request, kind))
    except Refused as refused:
        reason, text = refused.args
        detail = any_pb2.Any()
        detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="cosim.protocol.v1"))
        code = getattr(grpc.StatusCode, CODES.get(reason, "FAILED_PRECONDITION")).value[0]
        status = status_pb2.Status(code=code, message=text, details=[detail])
        context.abort_with_status(rpc_status.to_status(status))


def made(address: str) -> tuple[grpc.Server, str]:
    """A server, and its address: with the port that was picked, of ``host:0``."""
    room = MAX_BYTES + 65536
    server = grpc.server(
        futures.ThreadPoolExecutor(MAX_SESSIONS + 2),
        options=[
            ("grpc.max_receive_message_length", room),
            ("grpc.max_send_message_length", room),
            ("grpc.http2.min_ping_interval_without_data_ms", 1000),
            ("grpc.http2.max_ping_strikes", 0),
        ],
    )
    describe = grpc.unary_unary_rpc_method_handler(
        lambda *_: DESCRIPTION,
        pb.DescribeRequest.FromString,
        pb.DescribeResponse.SerializeToString,
    )
    stream = grpc.stream_stream_rpc_method_handler(
        session, pb.SessionRequest.FromString, pb.SessionResponse.SerializeToString
    )
    handlers = grpc.method_handlers_generic_handler(SERVICE, {"Describe": describe, "Session": stream})
    server.add_generic_rpc_handlers((handlers,))
    serving = health.HealthServicer()
    for name in ("", SERVICE):
        serving.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(serving, server)
    port = server.add_insecure_port(address)
    return server, address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    address = parser.parse_args().address
    server, where = made(address)
    server.start()
    signal.signal(signal.SIGTERM, lambda *_: server.stop(0))
    print("LISTENING", where, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
