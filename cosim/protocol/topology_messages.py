"""Topologies and routings on the wire, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.errors import UnreachableError
from cosim.network.flows import I32, I64
from cosim.protocol.flat_flows import array
from cosim.protocol.refusal import Refusal
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.topology.graph import Paths, Topology
from cosim.topology.routing import EcmpPaths


def encode_topology(topology: Topology, into: pb.Topology) -> None:
    """Write nodes and links into a message; the routing goes elsewhere."""
    into.name = topology.name
    into.num_endpoints = topology.num_endpoints
    into.node_names.extend(topology.node_names)
    into.link_src.extend(topology.link_src.tolist())
    into.link_dst.extend(topology.link_dst.tolist())
    into.link_rate_bps.extend(topology.link_rate_bps.tolist())
    into.link_latency_ps.extend(topology.link_latency_ps.tolist())


def decode_topology(message: pb.Topology, routing: pb.Routing) -> Topology:
    """Read a topology.

    Raises
    ------
    Refusal
        INVALID_OPEN: columns of different lengths, links to nowhere, no such routing.
    """
    src, dst = array(message.link_src, np.int32), array(message.link_dst, np.int32)
    rate, latency = array(message.link_rate_bps, np.float64), array(message.link_latency_ps, np.int64)
    nodes = len(message.node_names)
    if not len(src) == len(dst) == len(rate) == len(latency):
        raise Refusal("INVALID_OPEN", "the columns of links differ in length", field="topology")
    if not 0 < message.num_endpoints <= nodes:
        raise Refusal("INVALID_OPEN", "there are as many endpoints as nodes, or fewer", field="num_endpoints")
    if len(src) and not 0 <= min(src.min(), dst.min()) <= max(src.max(), dst.max()) < nodes:
        raise Refusal("INVALID_OPEN", f"a link to a node beyond the {nodes} that there are", field="link_src")
    if (rate <= 0).any() or not np.isfinite(rate).all() or (latency < 0).any():
        raise Refusal(
            "INVALID_OPEN", "a link's rate is above 0, its latency at least 0", field="link_rate_bps"
        )
    return Topology(
        message.name,
        message.num_endpoints,
        tuple(message.node_names),
        src,
        dst,
        rate,
        latency,
        _routing(routing, src, dst),
        (message.num_endpoints,),
    )


def _routing(message: pb.Routing, link_src: I32, link_dst: I32) -> Paths:
    if message.kind == pb.ROUTING_KIND_GIVEN:
        return GivenPaths(link_src, link_dst, endpoints_forward=message.endpoints_forward)
    if message.kind == pb.ROUTING_KIND_ECMP:
        return EcmpPaths(seed=message.seed, endpoints_forward=message.endpoints_forward)
    name = pb.RoutingKind.Name(message.kind) if message.kind in pb.RoutingKind.values() else message.kind
    raise Refusal("INVALID_OPEN", f"no routing of kind {name} here", field="routing")


class GivenPaths(Paths):
    """Paths that the other side gives, by (source, destination, channel)."""

    name = "given"

    def __init__(self, link_src: I32, link_dst: I32, *, endpoints_forward: bool = False) -> None:
        self._ends = link_src, link_dst
        self._shortest = EcmpPaths(endpoints_forward=endpoints_forward)
        self._links: dict[tuple[int, int, int], I32] = {}
        self._dead: list[tuple[int, ...]] = []
        self._detours: dict[tuple[int, ...], dict[tuple[int, int, int], I32]] = {}

    @property
    def endpoints_forward(self) -> bool:
        """As the other side's routing."""
        return self._shortest.endpoints_forward

    def with_switches(self) -> GivenPaths:
        """See :class:`~cosim.topology.graph.Paths`: whatever ends they have, the other side gives them."""
        return self

    def know(self, dead: Sequence[tuple[int, ...]]) -> None:
        """Take paths round these sets of dead links, too; those that are new get the next numbers, from 1."""
        self._dead = [*dict.fromkeys([*self._dead, *dead])]

    def add(self, message: pb.Paths, num_links: int) -> None:
        """Take paths.

        Raises
        ------
        Refusal
            INVALID_FLOWS: columns that don't fit each other, or links that don't exist.
        """
        ends, links = array(message.end, np.int64), array(message.link, np.int32)
        if not len(message.src) == len(message.dst) == len(message.channel) == len(ends):
            raise Refusal("INVALID_FLOWS", "the columns of paths differ in length", field="paths")
        starts = np.concatenate([[0], ends])
        if (
            (np.diff(starts) < 0).any()
            or starts[-1] != len(links)
            or (len(links) and links.max() >= num_links)
        ):
            raise Refusal("INVALID_FLOWS", "paths.end must rise to the number of links", field="paths")
        sets = array(message.dead_set, np.int64) if message.dead_set else np.zeros(len(ends), np.int64)
        if len(sets) != len(ends) or (len(sets) and sets.max() > len(self._dead)):
            raise Refusal(
                "INVALID_FLOWS", f"paths.dead_set is of {len(self._dead)} sets of dead links", field="paths"
            )
        for k, triple in enumerate(zip(message.src, message.dst, message.channel, strict=True)):
            path, number = links[starts[k] : starts[k + 1]], int(sets[k])
            known = self._links
            if number:
                known = self._detours.setdefault(self._dead[number - 1], {})
            self._check(triple, path, known)
            known[triple] = path

    def around(
        self,
        topology: Topology,  # noqa: ARG002
        dead: NDArray[np.bool_],
        src: I32,
        dst: I32,
        channel: I32,
    ) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`: as the other side has it, none where it said nothing."""
        known = self._detours.get(tuple(np.flatnonzero(dead).tolist()), {})
        triples = zip(src.tolist(), dst.tolist(), channel.tolist(), strict=True)
        return _in_a_row([known.get(triple, _NOWHERE) for triple in triples])

    def _check(self, triple: tuple[int, int, int], path: I32, known: dict[tuple[int, int, int], I32]) -> None:
        """A path joins its ends, and is the one that was given before."""
        src, dst = self._ends[0][path].tolist(), self._ends[1][path].tolist()
        if [triple[0], *dst] != [*src, triple[1]]:
            raise Refusal(
                "INVALID_FLOWS",
                f"the path of {triple[:2]} is no way from {triple[0]} to {triple[1]}",
                field="paths",
            )
        if triple in known and not np.array_equal(known[triple], path):
            raise Refusal("INVALID_FLOWS", "the path of a triple never changes", field="paths")

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`."""
        parts = []
        for triple in zip(src.tolist(), dst.tolist(), channel.tolist(), strict=True):
            if triple[0] == triple[1]:
                parts.append(_NOWHERE)
            elif triple in self._links:
                parts.append(self._links[triple])
            else:
                one, other = (topology.node_names[node] for node in triple[:2])
                raise UnreachableError(f"no path was given from {one} to {other} on channel {triple[2]}")
        return _in_a_row(parts)

    def alternatives(self, topology: Topology, src: I32, dst: I32, most: int) -> tuple[I64, I64, I32]:
        """All shortest paths: a load balancer chooses among those that the other side's routing knows."""
        return self._shortest.alternatives(topology, src, dst, most)


_NOWHERE = np.empty(0, np.int32)


def _in_a_row(paths: Sequence[I32]) -> tuple[I64, I32]:
    """Paths in CSR form."""
    ptr = np.zeros(len(paths) + 1, np.int64)
    np.cumsum([len(p) for p in paths], out=ptr[1:])
    return ptr, np.concatenate(paths) if paths else _NOWHERE
