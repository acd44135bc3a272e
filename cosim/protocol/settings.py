"""Which simulator a session is of, what is asked of it, and what is done where it is slow or dies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cosim.errors import FeatureError, TopologyError
from cosim.protocol.address import Tls
from cosim.protocol.link_events import ToldChanges, encode_events
from cosim.protocol.topology_messages import encode_topology
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.registry import nearest
from cosim.topology.graph import Topology

RoutingName = Literal["auto", "given", "ecmp", "spray"]
_ROUTINGS = {
    "given": (pb.ROUTING_KIND_GIVEN, pb.FEATURE_GIVEN_PATHS),
    "ecmp": (pb.ROUTING_KIND_ECMP, pb.FEATURE_ECMP),
    "spray": (pb.ROUTING_KIND_SPRAY, pb.FEATURE_SPRAY),
}


@dataclass(frozen=True)
class LinkEvent:
    """A link goes down, or comes back, at a time; or all links of a node.

    ``link`` is a number, or a name as in results (``leaf0 -> spine1``: every link from one to the other).
    """

    time_ps: int
    link: int | str
    up: bool
    node: str = ""

    def links(self, topology: Topology) -> list[int]:
        """Numbers of the links that are meant.

        Raises
        ------
        TopologyError
            There is none.
        """
        if self.node:
            if self.node not in topology.node_names:
                near = nearest(self.node, topology.node_names)
                raise TopologyError(f"failures: {topology.name} has no node {self.node!r}{near}")
            node = topology.node_names.index(self.node)
            return np.flatnonzero((topology.link_src == node) | (topology.link_dst == node)).tolist()
        if isinstance(self.link, int):
            return [topology.own_link(self.link)]
        names = [topology.link_name(link) for link in range(topology.num_links)]
        if self.link not in names:
            near = nearest(self.link, names)
            raise TopologyError(f"failures: {topology.name} has no link {self.link!r}{near}")
        return [link for link, name in enumerate(names) if name == self.link]


@dataclass(frozen=True)
class SessionSettings:
    """What the simulator is to do; nothing said is left to its defaults."""

    queue_discipline: str = ""
    queue_bytes: int = 0
    mark_min_bytes: int | None = None
    mark_max_bytes: int | None = None
    transport: str = ""
    mtu_bytes: int = 0
    mltcp: bool = False
    routing: RoutingName = "auto"
    routing_seed: int = 0
    link_events: Sequence[LinkEvent] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def request(self, topology: Topology, seed: int, there: pb.DescribeResponse, most_bytes: int) -> pb.Open:
        """The message that opens a session.

        Raises
        ------
        FeatureError
            The simulator can't do it, by what it says of itself.
        """
        message = pb.Open(seed=seed, options=self.options, max_message_bytes=most_bytes)
        message.version.CopyFrom(there.version)
        encode_topology(topology, message.topology)
        message.routing.kind, feature = self._routing(topology, there)
        message.routing.seed = self.routing_seed
        message.routing.endpoints_forward = topology.routing.endpoints_forward
        # What it says that it releases it must release: the engine counts on that.
        needs = [pb.FEATURE_DEPENDENT_FLOWS] if pb.FEATURE_DEPENDENT_FLOWS in there.features else []
        needs.append(feature)
        self._ask_for_queue(message, there)
        needs += self._ask_for_marks(message)
        needs += self._ask_for_transport(message, there)
        needs += self._ask_for_link_events(message, topology, there)
        missing = [f for f in needs if f not in there.features]
        if missing:
            names = ", ".join(pb.Feature.Name(f).removeprefix("FEATURE_").lower() for f in missing)
            raise FeatureError(f"{there.simulator} can't do what is asked: {names}")
        message.required_features.extend(needs)
        return message

    def _ask_for_queue(self, message: pb.Open, there: pb.DescribeResponse) -> None:
        if not self.queue_discipline and not self.queue_bytes:
            return
        message.queue.discipline = self.queue_discipline
        message.queue.capacity_bytes = self.queue_bytes
        known = there.queue_disciplines
        if self.queue_discipline and known and self.queue_discipline not in known:
            raise FeatureError(
                f"{there.simulator} has no queue discipline {self.queue_discipline!r}; "
                f"it has {', '.join(known)}"
            )

    def _ask_for_marks(self, message: pb.Open) -> list[pb.Feature]:
        if self.mark_min_bytes is None and self.mark_max_bytes is None:
            return []
        low = self.mark_min_bytes if self.mark_min_bytes is not None else self.mark_max_bytes
        high = self.mark_max_bytes if self.mark_max_bytes is not None else low
        message.ecn.mark_min_bytes, message.ecn.mark_max_bytes = low or 0, high or 0
        return [pb.FEATURE_ECN]

    def _ask_for_transport(self, message: pb.Open, there: pb.DescribeResponse) -> list[pb.Feature]:
        if not self.transport and not self.mtu_bytes and not self.mltcp:
            return []
        message.transport.name = self.transport
        message.transport.mtu_bytes = self.mtu_bytes
        message.transport.mltcp = self.mltcp
        if self.transport and self.transport not in there.transports:
            raise FeatureError(
                f"{there.simulator} has no transport {self.transport!r}; "
                f"it has {', '.join(there.transports) or 'no choice'}"
            )
        return [pb.FEATURE_COFLOW] if self.mltcp else []

    def _ask_for_link_events(
        self, message: pb.Open, topology: Topology, there: pb.DescribeResponse
    ) -> list[pb.Feature]:
        own = topology.link_rate_bps
        found = {
            (event.time_ps, link, event.up, float(own[link]))
            for event in self.link_events
            for link in event.links(topology)
        }
        told = ToldChanges(topology)
        found |= {(one.time_ps, one.link, one.rate_bps > 0, one.rate_bps) for one in told.changes}
        live = pb.FEATURE_LIVE_CHANGES in there.features and topology.changes is not None
        if not found and not live:
            return []
        encode_events(sorted(found), message.link_events, rates=told.has_rates)
        needs = [pb.FEATURE_LINK_EVENTS] if found else [pb.FEATURE_LIVE_CHANGES]
        if told.has_rates:
            needs.append(pb.FEATURE_LINK_RATES)
        # Failures that are the network's own setting leave paths as they are, and aren't among the sets told.
        detours = pb.FEATURE_DETOURS in there.features and not self.link_events
        if told.detection_ps is not None and detours:
            message.link_events.detection_ps = told.detection_ps
            needs.append(pb.FEATURE_DETOURS)
        return needs

    def _routing(self, topology: Topology, there: pb.DescribeResponse) -> tuple[pb.RoutingKind, pb.Feature]:
        """As asked; else given paths where they are taken; else ECMP where the topology routes so."""
        if self.routing != "auto":
            return _ROUTINGS[self.routing]
        if pb.FEATURE_GIVEN_PATHS in there.features:
            return _ROUTINGS["given"]
        if topology.routing.name in ("ecmp", "shortest") and pb.FEATURE_ECMP in there.features:
            return _ROUTINGS["ecmp"]
        raise FeatureError(
            f"{there.simulator} can't route as this topology does ({topology.routing.name}); "
            "set routing: ecmp or spray to have it route by itself"
        )


_SHORTEST_PING_S = 0.25
"""A busy machine takes longer to answer more often than that."""


@dataclass(frozen=True)
class FailurePolicy:
    """How long to wait, in seconds of the wall's clock, and what to do about a server that dies.

    ``answer_s``: for any answer. ``budget_s``: what an advance is asked to take at most before it says how
    far it is. ``keepalive_s``: at most between pings, and for their answer (:attr:`ping_s`).
    ``most_deaths``: servers that may die, one after the other, before the run has gone any further.
    """

    start_s: float = 30.0
    answer_s: float = 60.0
    budget_s: float = 2.0
    keepalive_s: float = 5.0
    recover: bool = True
    most_deaths: int = 3

    @property
    def ping_s(self) -> float:
        """So often that a frozen server is found in half the time that an answer may take."""
        return max(_SHORTEST_PING_S, min(self.keepalive_s, self.answer_s / 4))


@dataclass(frozen=True)
class Target:
    """Which server: a command that starts one, or the address of one that runs; ``name``: in errors."""

    command: tuple[str, ...] = ()
    address: str | None = None
    tls: Tls | None = None
    name: str = ""
