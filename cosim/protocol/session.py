"""A session on the server's side: requests in order, answers as the protocol's README says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cosim import __version__
from cosim.errors import CosimError
from cosim.network.flows import I64
from cosim.network.simulator import NetworkSimulator
from cosim.protocol.flat_flows import array, batches, decode
from cosim.protocol.frames import Frames, can_connect, connect
from cosim.protocol.link_events import dead_sets, decode_events
from cosim.protocol.live_changes import decode_changes, decode_control
from cosim.protocol.refusal import Refusal, refusal_of
from cosim.protocol.sample import encode_sample
from cosim.protocol.served_network import AdvanceResult, ServedNetwork
from cosim.protocol.topology_messages import GivenPaths, decode_topology
from cosim.protocol.v1 import VERSION
from cosim.protocol.v1 import network_simulator_pb2 as pb

GONE = -1
"""Instead of a sequence number: whatever runs, nobody waits for it any more."""


@dataclass(frozen=True)
class ServerConfig:
    """What a server serves: how to make a network, and what is said of it."""

    make: Callable[[], NetworkSimulator]
    shares: bool = False
    max_open_flows: int = 1 << 18
    max_sessions: int = 8
    max_message_bytes: int = 1 << 24
    settings: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> pb.DescribeResponse:
        """The answer to Describe."""
        there = self.make().describe()
        features = [
            pb.FEATURE_DEPENDENT_FLOWS,
            pb.FEATURE_START_DEPENDENCIES,
            pb.FEATURE_GIVEN_PATHS,
            pb.FEATURE_ECMP,
            pb.FEATURE_CANCEL,
            pb.FEATURE_WALL_BUDGET,
        ]
        if can_connect():
            features.append(pb.FEATURE_SOCKET)
        claims = {
            pb.FEATURE_PEEK: there.peek,
            pb.FEATURE_QUEUES: there.queues,
            pb.FEATURE_RATES: there.rates,
            pb.FEATURE_LIVE_CHANGES: there.live_changes,
            pb.FEATURE_LIVE_CONTROL: there.live_control,
            pb.FEATURE_SWITCH_ENDS: there.switch_ends,
            pb.FEATURE_COMPUTATIONS: there.computations,
        }
        features += [feature for feature, claimed in claims.items() if claimed]
        if there.link_changes:
            features += [pb.FEATURE_LINK_EVENTS, pb.FEATURE_LINK_RATES, pb.FEATURE_DETOURS]
        if self.shares:
            features += [pb.FEATURE_PRIORITY, pb.FEATURE_WEIGHT]
        return pb.DescribeResponse(
            version=pb.Version(major=VERSION[0], minor=VERSION[1]),
            simulator=there.name,
            simulator_version=__version__,
            build=f"cosim {__version__}",
            deterministic=there.deterministic,
            quantum_ps=there.quantum_ps,
            features=features,
            limits=pb.Limits(
                max_message_bytes=self.max_message_bytes,
                max_open_flows=self.max_open_flows,
                max_sessions=self.max_sessions,
                max_nodes=1 << 20,
                max_links=1 << 22,
            ),
        )


class Session:
    """One stream's simulation. :meth:`handle` answers one request; :meth:`cancel` may come at any time."""

    def __init__(self, served: ServerConfig) -> None:
        self.served = served
        self.described = served.describe()
        self._network: NetworkSimulator | None = None
        self._simulation: ServedNetwork | None = None
        self._paths: GivenPaths | None = None
        self._num_links = 0
        self._own_bps = np.empty(0, np.float64)
        self._changes_links = False
        self._sequence = 0
        self._partial = False
        self._cancelled = 0
        self._most_bytes = served.max_message_bytes
        self.events = 0

    def handle(self, request: pb.SessionRequest) -> Iterator[pb.SessionResponse]:
        """The answers to a request.

        Raises
        ------
        Refusal
            An error; the session is over then.
        """
        kind = request.WhichOneof("request")
        if (kind == "open") != (self._simulation is None):
            raise Refusal("STATE", f"{kind or 'an empty request'} is not taken now", request=kind)
        if self._partial and kind != "advance":
            raise Refusal("STATE", f"{kind} between two parts of an advance", request=kind)
        try:
            if kind == "open":
                yield self.open(request.open)
            elif kind == "advance":
                yield from self.advance(request.advance)
            elif kind == "statistics":
                yield self._statistics()
            elif kind == "peek":
                yield self._peek()
            elif kind == "sample":
                yield self._sample(request.sample)
        except (CosimError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise refusal_of(error) from error

    def cancel(self, sequence: int) -> None:
        """Stop that advance, if it is the one that runs."""
        self._cancelled = sequence

    def close(self) -> None:
        """Let go of the network."""
        if self._network is not None:
            self._network.close()

    def connect(self, name: str) -> Frames | None:
        """The socket that a call named; None where it can't be reached."""
        return connect(name, self.served.max_message_bytes)

    # -- requests ------------------------------------------------------------------------------------

    def open(self, message: pb.Open) -> pb.SessionResponse:
        """Build the network."""
        if message.version.major != VERSION[0]:
            raise Refusal(
                "VERSION",
                f"version {message.version.major}.{message.version.minor} is not spoken here; "
                f"{VERSION[0]}.{VERSION[1]} is",
                spoken=f"{VERSION[0]}.{VERSION[1]}",
            )
        self._refuse_what_is_not_there(message)
        limits = self.described.limits
        for what, count, most in (
            ("nodes", len(message.topology.node_names), limits.max_nodes),
            ("links", len(message.topology.link_src), limits.max_links),
        ):
            if count > most:
                raise Refusal("TOO_LARGE", f"{count} {what}; at most {most} fit", limit=most, given=count)
        topology = decode_topology(message.topology, message.routing)
        if isinstance(topology.routing, GivenPaths):
            self._paths = topology.routing
        if message.HasField("link_events"):
            changes = decode_events(message.link_events, topology.link_rate_bps)
            topology = replace(topology, changes=changes)
            if self._paths is not None:
                self._paths.know(dead_sets(changes))
        self._num_links, self._own_bps = topology.num_links, topology.link_rate_bps
        self._changes_links = topology.changes is not None
        if message.max_message_bytes:
            self._most_bytes = min(self._most_bytes, message.max_message_bytes)
        network = self.served.make()
        try:
            network.open(topology, message.seed, dict(message.options) or None)
        except CosimError as error:
            raise Refusal("INVALID_OPEN", str(error), field="options") from error
        self._network = network
        self._simulation = ServedNetwork(network, topology)
        opened = pb.Opened(credit=limits.max_open_flows, settings=self.served.settings)
        return pb.SessionResponse(opened=opened)

    def _refuse_what_is_not_there(self, message: pb.Open) -> None:
        for feature in message.required_features:
            if feature not in self.described.features:
                name = pb.Feature.Name(feature) if feature in pb.Feature.values() else str(feature)
                raise Refusal("FEATURE_MISSING", f"{self.described.simulator} has no {name}", feature=name)
        names = ["queue", "ecn", "transport"]
        if pb.FEATURE_LINK_EVENTS not in self.described.features:
            names.append("link_events")
        for name in names:
            if message.HasField(name):
                raise Refusal(
                    "INVALID_OPEN", f"{self.described.simulator} models no {name}: leave it out", field=name
                )

    def advance(self, message: pb.Advance) -> Iterator[pb.SessionResponse]:
        """Take a part; run and answer after the last one."""
        began = time.perf_counter_ns()
        self.check_sequence(message)
        self.take(message)
        if message.more:
            return
        budget = message.wall_budget_us
        until = time.monotonic() + budget / 1e6 if budget else None
        assert self._simulation is not None
        # The client says which flows nothing can wait for any more: without, a long run would keep all of
        # them.
        self._simulation.tracker.forget(message.oldest_id)
        ran = self._simulation.run(
            message.horizon_ps, until, lambda: self._cancelled in (self._sequence, GONE)
        )
        yield from self.answers(ran, began)

    def check_sequence(self, message: pb.Advance) -> None:
        """Refuse what is not the next advance, or the next part of this one."""
        expected = self._sequence + (not self._partial)
        if message.sequence != expected:
            raise Refusal(
                "SEQUENCE",
                f"advance {message.sequence} is given, {expected} is next",
                expected=expected,
                given=message.sequence,
            )
        self._sequence = expected
        # Between two parts only the next part is taken: what has come of an advance is not an advance.
        self._partial = message.more

    def take(self, message: pb.Advance) -> None:
        """Take changes, paths, flows and starts, in this order."""
        simulation = self._simulation
        assert simulation is not None
        # In this order: a detour goes round a set of dead links, a flow needs its path, a start its flow, and
        # one message may bring them all.
        if message.HasField("changes"):
            self._change(message.changes, simulation)
        if message.HasField("paths"):
            if self._paths is None:
                raise Refusal("INVALID_FLOWS", "paths, but Open did not say that they are given")
            self._paths.add(message.paths, self._num_links)
        if message.HasField("flows"):
            flows = decode(message.flows)
            # A client that keeps to the credit never meets this; one that doesn't may not fill the memory.
            if flows.count > self.credit():
                raise Refusal(
                    "OVERLOADED",
                    f"{flows.count} flows; there is room for {self.credit()} more",
                    limit=self.credit(),
                    given=flows.count,
                )
            simulation.take(flows)
        if message.HasField("starts"):
            starts = message.starts
            start = array(starts.start_ps, np.int64)
            cause = array(starts.cause_ps, np.int64) if starts.cause_ps else start
            simulation.start(array(starts.id, np.int64), start, cause)

    def _change(self, message: pb.Changes, simulation: ServedNetwork) -> None:
        if pb.FEATURE_LIVE_CHANGES not in self.described.features or not self._changes_links:
            text = f"{self.described.simulator} has no links here that change while it runs"
            raise Refusal("STATE", text, request="changes")
        changes = decode_changes(message, self._own_bps, simulation.granted_ps)
        if self._paths is not None:
            self._paths.know(dead_sets(changes))
        simulation.change(changes)
        if message.control:
            if pb.FEATURE_LIVE_CONTROL not in self.described.features:
                text = f"{self.described.simulator} has no control whose parameters change while it runs"
                raise Refusal("STATE", text, request="changes")
            simulation.tune(decode_control(message))

    def credit(self) -> int:
        """Flows that may be given now."""
        assert self._simulation is not None
        return self.served.max_open_flows - self._simulation.open_flows

    def answers(self, ran: AdvanceResult, began: int) -> Iterator[pb.SessionResponse]:
        """The parts of an answer."""
        assert self._simulation is not None
        for low, high in batches(len(ran.ids), max(1, (self._most_bytes - 256) // 32)):
            last = high == len(ran.ids)
            answer = pb.Advanced(sequence=self._sequence, more=not last)
            fill(answer, *(c[low:high] for c in (ran.ids, ran.start_ps, ran.time_ps, ran.cause_ps)))
            if last:
                answer.granted_ps = ran.granted_ps
                answer.stop_reason = ran.stop_reason  # type: ignore[assignment]
                answer.credit = self.credit()
                answer.digest.a, answer.digest.b = self._simulation.digest.a, self._simulation.digest.b
                answer.simulator_ns = ran.simulator_ns
                answer.server_ns = time.perf_counter_ns() - began
                answer.events = self.events
            yield pb.SessionResponse(advanced=answer)

    def _statistics(self) -> pb.SessionResponse:
        assert self._network is not None
        found = self._network.statistics()
        busy, bin_ps = found.busy_ps, found.bin_ps
        others = 8 * busy.shape[1] * (1 + len(found.extra)) + 1024
        while len(busy) > 1 and 8 * busy.size + others > self._most_bytes:  # bins are joined until they fit
            busy = np.add.reduceat(busy, np.arange(0, len(busy), 2), axis=0)
            bin_ps *= 2
        answer = pb.Statistics(
            bin_ps=bin_ps,
            flows_started=found.flows_started,
            flows_completed=found.flows_completed,
            events=found.events,
        )
        answer.link_bytes.extend(found.link_bytes.tolist())
        answer.busy_ps.extend(busy.ravel().tolist())
        for name, values in found.extra.items():
            answer.columns.append(pb.LinkColumn(name=name, values=np.asarray(values, np.float64).tolist()))
        return pb.SessionResponse(statistics=answer)

    def _peek(self) -> pb.SessionResponse:
        assert self._simulation is not None
        if pb.FEATURE_PEEK not in self.described.features:
            raise Refusal("STATE", f"{self.described.simulator} does not peek", request="peek")
        found = self._simulation.peek()
        return pb.SessionResponse(peeked=pb.Peeked() if found is None else pb.Peeked(time_ps=found))

    def _sample(self, asked: pb.SampleRequest) -> pb.SessionResponse:
        assert self._simulation is not None
        needed = {pb.FEATURE_QUEUES: len(asked.link) > 0, pb.FEATURE_RATES: asked.rates}
        for feature, is_asked in needed.items():
            if is_asked and feature not in self.described.features:
                text = f"{self.described.simulator} has no {pb.Feature.Name(feature)}"
                raise Refusal("STATE", text, request="sample")
        links = array(asked.link, np.int64)
        if len(links) and links.max() >= self._num_links:
            raise Refusal("STATE", f"link {links.max()} of {self._num_links}", request="sample")
        queues, rates = self._simulation.sample(links, rates=asked.rates)
        return pb.SessionResponse(sampled=encode_sample(queues, rates, self._simulation.has_work()))


def fill(answer: pb.Advanced, ids: I64, start_ps: I64, time_ps: I64, cause_ps: I64) -> None:
    """Write completions into an answer; causes only where one is not the completion's own time."""
    columns: list[tuple[Any, I64]] = [
        (answer.id, ids),
        (answer.start_ps, start_ps),
        (answer.time_ps, time_ps),
    ]
    # Most networks are certain when it happens, and a column is a quarter of the answer.
    if (cause_ps != time_ps).any():
        columns.append((answer.cause_ps, cause_ps))
    for into, values in columns:
        into.extend(values.tolist())
