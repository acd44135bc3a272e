"""A network simulator elsewhere, behind the seam: :class:`RemoteNetwork`.

Every advance is written to a log before it goes out, and its answer when it came. So a deterministic server
that dies is started again and brought back, and a run whose own process died goes on from its log: until the
log ends, the answers come from there (:mod:`cosim.protocol.recovery`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cosim.errors import FeatureError, NetworkError, ProtocolError
from cosim.fabric.changes import LinkChange, RouteChange
from cosim.network.flows import I64, FlowBatch
from cosim.network.simulator import (
    Advance,
    Capabilities,
    NetworkSimulator,
    NetworkStatistics,
    QueueSample,
    RateSample,
)
from cosim.protocol.advance_answer import AdvanceAnswer
from cosim.protocol.advance_parts import advance_parts, make_paths
from cosim.protocol.flat_flows import array
from cosim.protocol.injector import Injection, Injector
from cosim.protocol.link_events import DetourTable, ToldChanges, decode_events
from cosim.protocol.live_changes import encode_changes, encode_control
from cosim.protocol.open_groups import known_paths
from cosim.protocol.recovery import RecoveringSession
from cosim.protocol.sample import decode_queues, decode_rates
from cosim.protocol.settings import FailurePolicy, SessionSettings, Target
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.topology.graph import Topology


class RemoteNetwork(NetworkSimulator):
    """One session of a server. See :class:`~cosim.network.simulator.NetworkSimulator`.

    Parameters
    ----------
    target
        What to start, or where to connect. Nothing happens before it is needed.
    settings, policy
        What the simulator is asked to do; how long to wait and whether to recover.
    log
        Where the injection log goes; None: a file of its own, removed at the end. :meth:`log_to` says so
        later.
    """

    def __init__(
        self,
        target: Target,
        settings: SessionSettings = SessionSettings(),  # noqa: B008 - immutable
        policy: FailurePolicy = FailurePolicy(),  # noqa: B008 - immutable
        *,
        log: Path | None = None,
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._session = RecoveringSession(target, policy, log)
        self._topology: Topology | None = None
        self._injector: Injector | None = None
        self._sent_paths: set[tuple[int, int, int]] | None = None
        self._told: ToldChanges | None = None
        self._detours: DetourTable | None = None
        self._changes: pb.Changes | None = None
        self._sampled: pb.Sampled | None = None
        self._answer: AdvanceAnswer | None = None
        self._budget_us = int(policy.budget_s * 1e6)

    @property
    def last(self) -> pb.Advanced | None:
        """The last part of the last answer to an advance."""
        return self._answer.message() if self._answer is not None and self._answer.parts else None

    @property
    def elsewhere(self) -> bool:
        """Always."""
        return True

    @property
    def session(self) -> RecoveringSession:
        """The session behind: the server, its log, and how often it died."""
        return self._session

    def log_to(self, path: Path, *, resume: bool = False) -> None:
        """Keep the injection log there; or go on with the one that is there. Before :meth:`open`.

        Raises
        ------
        NetworkError
            The session is open already.
        InputError
            There is no log to go on with.
        """
        if self._topology is not None:
            raise NetworkError("the session is open already")
        self._session.log_to(path, resume=resume)

    def describe(self) -> Capabilities:
        """See :class:`~cosim.network.simulator.NetworkSimulator`. Starts the server, if need be."""
        there = self._session.describe()
        return Capabilities(
            name=there.simulator,
            dependent_flows=pb.FEATURE_DEPENDENT_FLOWS in there.features,
            # A run that goes on from a log gets its answers from there, and a log holds no peeks.
            peek=pb.FEATURE_PEEK in there.features and not self._session.kept,
            deterministic=there.deterministic,
            quantum_ps=max(1, there.quantum_ps),
            queues=pb.FEATURE_QUEUES in there.features,
            rates=pb.FEATURE_RATES in there.features,
            live_changes=pb.FEATURE_LIVE_CHANGES in there.features,
            live_control=pb.FEATURE_LIVE_CONTROL in there.features,
            switch_ends=pb.FEATURE_SWITCH_ENDS in there.features,
            computations=pb.FEATURE_COMPUTATIONS in there.features,
        )

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`.

        ``options`` go to the simulator as texts.
        """
        if self._topology is not None:
            raise NetworkError(f"{self._session.name}: a network is opened once")
        there = self._session.describe()
        settings = self._settings
        if options:
            texts = {key: str(value) for key, value in options.items()}
            settings = replace(settings, options={**settings.options, **texts})
        request = settings.request(topology, seed, there, self._session.most_bytes)
        if request.routing.kind == pb.ROUTING_KIND_GIVEN:
            self._sent_paths = set()
        if request.HasField("link_events"):
            self._told = ToldChanges(topology)
            detours = request.link_events.HasField("detection_ps") or not self._told.changes
            if self._sent_paths is not None and detours:
                changes = decode_events(request.link_events, topology.link_rate_bps)
                self._detours = DetourTable(topology, changes)
        opened = self._session.open(pb.SessionRequest(open=request).SerializeToString(deterministic=True))
        self._topology = topology
        self._releases = pb.FEATURE_DEPENDENT_FLOWS in there.features
        self._most_bytes = self._session.most_bytes
        self._injector = Injector(there.simulator)
        self._injector.credit = opened.credit
        self.settings = dict(opened.settings)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        injector = self._injector
        if injector is None:
            raise NetworkError(f"{self._session.name}: advance needs an open network")
        if not self._releases:
            self._refuse_dependencies(flows)
        self._sampled = None
        injection = injector.take(flows)
        horizon = min(horizon_ps, injection.horizon_ps)
        changes, self._changes = self._changes, None
        parts = advance_parts(
            self._paths(injection),
            injection.flows,
            injection.starts,
            horizon,
            self._budget_us,
            self._most_bytes,
            oldest_id=injection.oldest_id,
            changes=changes,
        )
        answer = self._answer = self._session.advance(parts)
        done = injector.finish(horizon, answer)
        if answer.has_digest or self._session.is_live:
            injector.check_digest(answer)
        if self._told is not None:
            self._told.check(done.time_ps)
        injector.credit = answer.credit
        return Advance(answer.granted_ps, done)

    def change(self, changes: Sequence[LinkChange | RouteChange]) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`: the next advance brings them."""
        if pb.FEATURE_LIVE_CHANGES not in self._session.describe().features or self._told is None:
            super().change(changes)
        self._changes = self._changes or pb.Changes()
        encode_changes(changes, self._changes)
        if self._detours is not None:
            self._detours.hear(changes)

    def tune(self, values: Mapping[str, Any], now_ps: int) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`: an advance of no length brings them.

        So the server refuses them here, where its control does not take them. The session is over then.
        """
        if pb.FEATURE_LIVE_CONTROL not in self._session.describe().features or self._told is None:
            super().tune(values, now_ps)
        self._changes = self._changes or pb.Changes()
        encode_control(values, self._changes)
        assert self._injector is not None
        self.advance(FlowBatch(), self._injector.granted_ps)  # nothing completes: a grant is closed for that

    @property
    def takes_paths(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`: where they are given."""
        return self._sent_paths is not None

    def peek(self) -> int | None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        answer = self._session.ask(pb.SessionRequest(peek=pb.PeekRequest())).peeked
        return answer.time_ps if answer.HasField("time_ps") else None

    def queues(self, links: I64, now_ps: int) -> QueueSample:
        """See :class:`~cosim.network.simulator.NetworkSimulator`: as they stand at the server's grant."""
        del now_ps
        found = self._sample(pb.SampleRequest(link=links.tolist()))
        return decode_queues(found, len(links), self._session.name)

    def rates(self) -> RateSample:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        return decode_rates(self._sample(pb.SampleRequest(rates=True)), self._session.name)

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        return (self._sampled or self._sample(pb.SampleRequest())).has_work

    def _sample(self, request: pb.SampleRequest) -> pb.Sampled:
        self._sampled = self._session.sample(pb.SessionRequest(sample=request))
        return self._sampled

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`.

        Raises
        ------
        ProtocolError
            Columns that don't fit the topology.
        """
        found = self._session.look(pb.SessionRequest(statistics=pb.StatisticsRequest())).statistics
        assert self._topology is not None
        links = self._topology.num_links
        columns = {column.name: array(column.values, np.float64) for column in found.columns}
        sizes = {len(found.link_bytes), *(len(values) for values in columns.values())}
        if sizes != {links} or (links and len(found.busy_ps) % links):
            raise ProtocolError(
                f"{self._session.name}: statistics that don't fit the topology's {links} links"
            )
        busy = array(found.busy_ps, np.int64).reshape(-1, max(1, links))
        return NetworkStatistics(
            link_bytes=array(found.link_bytes, np.int64),
            bin_ps=found.bin_ps,
            busy_ps=busy if len(busy) else np.zeros((1, links), np.int64),
            flows_started=found.flows_started,
            flows_completed=found.flows_completed,
            events=found.events,
            extra=columns,
        )

    def close(self) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`. The log stays where it was asked for."""
        self._session.close()

    def _paths(self, injection: Injection) -> pb.Paths | None:
        detours = self._detours
        if self._sent_paths is None or (injection.triples is None and detours is None):
            return None
        assert self._topology is not None
        message = pb.Paths()
        before = sorted(self._sent_paths) if detours is not None and detours.is_behind else []
        if injection.triples is not None:
            triples, ptr, links = known_paths(self._topology, injection.triples, self._sent_paths)
            message = make_paths(triples, ptr, links)
            if detours is not None:
                detours.add(message, triples, ptr, links)
        if detours is not None and detours.is_behind:
            detours.catch_up(message, before)
        return message if message.end else None

    def _refuse_dependencies(self, flows: FlowBatch) -> None:
        if any(g.release == "network" and len(g.table.dep_distance) for g in flows.groups):
            raise FeatureError(f"{self._session.name} does not release dependent flows; set release: engine")


def connect(address: str, **settings: Any) -> RemoteNetwork:
    """A session of a server that runs; ``settings`` as SessionSettings has them."""
    return RemoteNetwork(Target(address=address), SessionSettings(**settings))


def launch(command: Sequence[str], **settings: Any) -> RemoteNetwork:
    """A session of a server to be started."""
    return RemoteNetwork(Target(command=tuple(command)), SessionSettings(**settings))
