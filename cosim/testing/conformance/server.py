"""Checking a server of the protocol: by its address, or started by its command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.errors import ProtocolError
from cosim.network.flows import I64
from cosim.network.simulator import Capabilities, NetworkStatistics, QueueSample, RateSample
from cosim.protocol.advance_parts import advance_parts, make_paths, numbered
from cosim.protocol.connection import Connection
from cosim.protocol.flat_flows import FlatFlows, array
from cosim.protocol.launcher import ServerProcess
from cosim.protocol.open_groups import known_paths
from cosim.protocol.sample import decode_queues, decode_rates
from cosim.protocol.topology_messages import encode_topology
from cosim.protocol.v1 import VERSION
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.testing.conformance.cases import star
from cosim.testing.conformance.kit import Answer, Kit, Probe, Starts, run_checks
from cosim.testing.conformance.report import Report, Result
from cosim.topology.graph import Topology
from cosim.units import NEVER


def check_server(
    target: str | Sequence[str],
    *,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    deadline_s: float = 20.0,
    told: Callable[[Result], None] | None = None,
) -> Report:
    """Check a server against every rule of the protocol, as ``cosim conformance`` does.

    Parameters
    ----------
    target
        The address of a server (``unix:/path``, ``host:port``), or a command that serves: it is started
        with ``--address``, killed and started again.
    only, skip
        Names of checks to run (all, where empty), and not to run.
    deadline_s
        How long any answer may take, in seconds.
    told
        Called after each check.

    Returns
    -------
    The report; ``report.passed`` says whether no check failed.

    Raises
    ------
    LaunchError
        No server there, or the command doesn't serve.
    ValueError
        There is no check of such a name.

    Examples
    --------
    >>> import sys
    >>> serve = [sys.executable, "-m", "cosim.cli", "serve", "--network", "fair_share"]
    >>> check_server(serve, only=["handshake", "digest"]).passed  # doctest: +SKIP
    True
    """
    kit = ServerKit(target if isinstance(target, str) else tuple(target), deadline_s)
    try:
        kit.describe()
        return run_checks(kit, "server", only=only, skip=skip, told=told)
    finally:
        kit.close()


@dataclass(eq=False)
class ServerAnswer(Answer):
    """As the server put it: ``part_bytes`` are the sizes of its messages."""

    sequence: int
    credit: int
    part_bytes: list[int]
    cause_ps: I64


class ServerKit(Kit["ServerProbe"]):
    """A server under test. ``deadline_s`` bounds every answer."""

    def __init__(self, target: str | tuple[str, ...], deadline_s: float) -> None:
        self.topology = star()
        self.deadline_s = deadline_s
        self.described = pb.DescribeResponse()
        self._target = target
        self._process: ServerProcess | None = None

    def describe(self) -> None:
        """Ask the server what it is."""
        connection = self.connect()
        there = self.described = connection.describe()
        connection.close()
        self.capabilities = Capabilities(
            there.simulator,
            dependent_flows=self.has("dependent_flows"),
            peek=self.has("peek"),
            deterministic=there.deterministic,
            quantum_ps=max(1, there.quantum_ps),
        )

    def has(self, feature: str) -> bool:
        """See :meth:`Kit.has`."""
        return pb.Feature.Value(f"FEATURE_{feature.upper()}") in self.described.features

    def connect(self) -> Connection:
        """A new connection; starts the server where it is to be started here and doesn't run."""
        if isinstance(self._target, str):
            return Connection(self._target, deadline_s=self.deadline_s)
        if self._process is None or not self._process.is_alive:
            self._process = ServerProcess(self._target, timeout_s=max(30.0, self.deadline_s))
        return Connection(self._process.address, deadline_s=self.deadline_s)

    @property
    def process(self) -> ServerProcess | None:
        """The process that was started here, if one was."""
        return self._process

    def new_probe(self) -> ServerProbe:
        """See :meth:`Kit.new_probe`."""
        return ServerProbe(self.connect(), self.described, self.topology)

    def crash(self, probe: Probe) -> None:
        """See :meth:`Kit.crash`: ``kill -9`` of a server that was started here."""
        if self._process is not None:
            self._process.kill()
        else:
            super().crash(probe)

    def close(self) -> None:
        """End what was started."""
        if self._process is not None:
            self._process.stop()


class ServerProbe(Probe):
    """A session on a connection of its own."""

    def __init__(self, connection: Connection, there: pb.DescribeResponse, topology: Topology) -> None:
        super().__init__()
        self.connection = connection
        self._there = there
        self._topology = topology
        self._sent_paths: set[tuple[int, int, int]] = set()
        self._gives_paths = pb.FEATURE_GIVEN_PATHS in there.features
        self.sequence = 0
        self.told: list[ServerAnswer] = []
        """The answers, with what only servers say."""

    def request(self) -> pb.Open:
        """The message that opens a plain session."""
        message = pb.Open(seed=1, version=pb.Version(major=VERSION[0], minor=VERSION[1]))
        encode_topology(self._topology, message.topology)
        message.routing.kind = pb.ROUTING_KIND_GIVEN if self._gives_paths else pb.ROUTING_KIND_ECMP
        return message

    def open(self, message: pb.Open | None = None) -> pb.Opened:
        """See :meth:`Probe.open`; ``message``: another one than :meth:`request`."""
        self.connection.open_stream()
        self.send(pb.SessionRequest(open=message or self.request()))
        answer = self.receive()
        if not answer.HasField("opened"):
            raise ProtocolError(f"Open was answered by {answer.WhichOneof('response')}")
        return answer.opened

    def send(self, request: pb.SessionRequest) -> None:
        """Send anything."""
        self.connection.send(request.SerializeToString())

    def receive(self) -> pb.SessionResponse:
        """The next message."""
        return pb.SessionResponse.FromString(self.connection.receive())

    def ask(
        self,
        flows: FlatFlows | None = None,
        horizon_ps: int = NEVER,
        *,
        starts: Starts | None = None,
        wall_budget_us: int = 0,
        sequence: int | None = None,
    ) -> None:
        """Send an advance and don't wait."""
        paths = None
        if flows is not None:
            self.next_id = max(self.next_id, flows.first_id + flows.count)
            if self._gives_paths:
                src, dst, channel = (
                    flows.column(name).astype(np.int32) for name in ("src", "dst", "channel")
                )
                triples, ptr, links = known_paths(self._topology, (src, dst, channel), self._sent_paths)
                paths = make_paths(triples, ptr, links) if triples else None
        self.sequence = self.sequence + 1 if sequence is None else sequence
        most = min(1 << 22, self._there.limits.max_message_bytes or 1 << 22)
        for part in advance_parts(paths, flows, starts, horizon_ps, wall_budget_us, most):
            self.connection.send(numbered(part, self.sequence))

    def answer(self) -> ServerAnswer:
        """Receive an answer whole: its parts put together."""
        parts: list[pb.Advanced] = []
        sizes = []
        while not parts or parts[-1].more:
            response = self.receive()
            if not response.HasField("advanced"):
                raise ProtocolError(f"Advance was answered by {response.WhichOneof('response')}")
            sizes.append(response.ByteSize())
            parts.append(response.advanced)
        last = parts[-1]
        ids, start, time, cause = (
            np.concatenate([array(getattr(part, name), np.int64) for part in parts])
            for name in ("id", "start_ps", "time_ps", "cause_ps")
        )
        if not len(ids) == len(start) == len(time) == (len(cause) or len(ids)):
            raise ProtocolError(
                f"columns of Advanced differ: {len(ids)} id, {len(start)} start_ps, {len(time)} time_ps, "
                f"{len(cause)} cause_ps"
            )
        digest = (last.digest.a, last.digest.b)
        made = ServerAnswer(
            last.granted_ps, ids, start, time, digest, last.sequence, last.credit, sizes,
            cause if len(cause) else time,
        )  # fmt: skip
        self.answers.append(made)
        self.told.append(made)
        return made

    def advance(
        self,
        flows: FlatFlows | None = None,
        horizon_ps: int = NEVER,
        *,
        starts: Starts | None = None,
        wall_budget_us: int = 0,
    ) -> ServerAnswer:
        """See :meth:`Probe.advance`."""
        self.ask(flows, horizon_ps, starts=starts, wall_budget_us=wall_budget_us)
        return self.answer()

    def peek(self) -> int | None:
        """See :meth:`Probe.peek`."""
        self.send(pb.SessionRequest(peek=pb.PeekRequest()))
        answer = self.receive().peeked
        return answer.time_ps if answer.HasField("time_ps") else None

    def statistics(self) -> NetworkStatistics:
        """See :meth:`Probe.statistics`."""
        self.send(pb.SessionRequest(statistics=pb.StatisticsRequest()))
        found = self.receive().statistics
        links = self._topology.num_links
        busy = array(found.busy_ps, np.int64)
        return NetworkStatistics(
            link_bytes=array(found.link_bytes, np.int64),
            bin_ps=found.bin_ps,
            busy_ps=busy.reshape(-1, links) if len(busy) % links == 0 else busy.reshape(1, -1),
            flows_started=found.flows_started,
            flows_completed=found.flows_completed,
            events=found.events,
            extra={column.name: array(column.values, np.float64) for column in found.columns},
        )

    def sample(self, *, links: I64 | None = None, rates: bool = False) -> pb.Sampled:
        """Have it looked at."""
        asked = pb.SampleRequest(link=[] if links is None else links.tolist(), rates=rates)
        self.send(pb.SessionRequest(sample=asked))
        answer = self.receive()
        if not answer.HasField("sampled"):
            raise ProtocolError(f"SampleRequest was answered by {answer.WhichOneof('response')}")
        return answer.sampled

    def queues(self, links: I64, now_ps: int) -> QueueSample:
        """See :meth:`Probe.queues`; the server knows what it granted."""
        del now_ps
        return decode_queues(self.sample(links=links), len(links), self._there.simulator)

    def rates(self) -> RateSample:
        """See :meth:`Probe.rates`."""
        return decode_rates(self.sample(rates=True), self._there.simulator)

    def has_work(self) -> bool:
        """See :meth:`Probe.has_work`."""
        return self.sample().has_work

    def close(self) -> None:
        """See :meth:`Probe.close`."""
        self.connection.finish()
        self.connection.close()

    def break_off(self) -> None:
        """See :meth:`Probe.break_off`."""
        self.connection.drop_stream()
