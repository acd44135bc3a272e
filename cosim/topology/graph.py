"""A topology: endpoints, switches and directed links, with a routing.

Endpoints (GPUs, NPUs) are nodes 0..num_endpoints-1; every other node forwards. Links are directed and
numbered; ``rate_bps`` is a float because ASTRA-sim's notation is not a whole number of bits per second.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import TopologyError
from cosim.topology.checked_paths import checked_paths
from cosim.topology.host_shape import HostShape
from cosim.units import PS_PER_S, format_time

if TYPE_CHECKING:
    from cosim.fabric.changes import LinkChanges

MOST_LATENCY_PS = 1000 * PS_PER_S
"""The longest latency of a link: those of a path then add up within int64."""

BOOL = NDArray[np.bool_]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


class Paths(ABC):
    """What a routing does: paths for many (source, destination, channel) at once."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As a scenario names it: ``shortest``, ``ecmp``."""

    @property
    def endpoints_forward(self) -> bool:
        """Whether paths may pass through endpoints other than their own."""
        return False

    @abstractmethod
    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """The links of each pair's path.

        Parameters
        ----------
        topology
            The fabric.
        src, dst, channel
            int32[n]: endpoints, and the channel, by which a routing may choose among equal paths.

        Returns
        -------
        CSR of link numbers: ``ptr`` int64[n + 1] and ``links`` int32; src == dst has no links.

        Raises
        ------
        UnreachableError
            No path; names both endpoints.
        """

    def around(
        self, topology: Topology, dead: NDArray[np.bool_], src: I32, dst: I32, channel: I32
    ) -> tuple[I64, I32]:
        """The same where links are dead (bool[L]): paths that avoid them, without links where there is none.

        Unless a routing knows better, the cheapest path over what is left.
        """
        from cosim.topology.around import cheapest_around

        return cheapest_around(topology, dead, src, dst, channel)

    def with_switches(self) -> Paths:
        """The routing of flows that begin or end at switches: unless this knows better, the cheapest path."""
        from cosim.topology.routing import ShortestPaths

        return ShortestPaths(self.endpoints_forward, to_switches=True)

    @property
    def has_alternatives(self) -> bool:
        """Whether :meth:`alternatives` finds more than the one path that :meth:`paths` does."""
        return False

    def alternatives(self, topology: Topology, src: I32, dst: I32, most: int) -> tuple[I64, I64, I32]:
        """The equal-cost paths of each pair, at most so many: what a load balancer chooses among.

        (count int64[n], ptr int64[paths + 1], links int32): the paths of the first pair, of the second ...
        Here: the one that :meth:`paths` gives channel 0.
        """
        del most
        ptr, links = self.paths(topology, src, dst, np.zeros(len(src), np.int32))
        return np.ones(len(src), np.int64), ptr, links


@dataclass(frozen=True, eq=False)
class Topology:
    """Nodes and directed links. Immutable; columns of length L.

    Attributes
    ----------
    name
        As a person would say it: ``Ring(8)``, ``leaf-spine 4x4``.
    num_endpoints
        Nodes 0..num_endpoints-1 can host a rank.
    node_names
        One for each node.
    link_src, link_dst, link_rate_bps, link_latency_ps
        int32, int32, float64, int64.
    routing
        How (source, destination, channel) becomes links.
    dims
        Endpoints per dimension where the topology has dimensions (ASTRA-sim's notation; hosts with a
        scale-up switch: GPUs in a host, hosts; dimension 0 varies fastest), else ``(num_endpoints,)``.
    info
        Whatever the builder wants shown (oversubscription, tiers ...).
    scale_up
        bool[L]: links within a scale-up domain (GPU to NVSwitch); None where there is no such thing.
    link_number
        int32[L], in a part of a topology: the number of each link in the whole; None: this is the whole.
    changes
        Links that fail, slow down and come back; None: they don't.
    hosts
        What its hosts have, where the builder knows more than links marked as scale-up say.

    Examples
    --------
    >>> import cosim
    >>> topology = cosim.run('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''').records.topology
    >>> topology.name, topology.num_endpoints, topology.num_links
    ('Ring(4)', 4, 8)
    >>> topology.link_name(0)
    'npu0 -> npu1'
    """

    name: str
    num_endpoints: int
    node_names: tuple[str, ...]
    link_src: I32
    link_dst: I32
    link_rate_bps: F64
    link_latency_ps: I64
    routing: Paths
    dims: tuple[int, ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)
    scale_up: BOOL | None = None
    link_number: I32 | None = None
    changes: LinkChanges | None = None
    hosts: HostShape | None = None

    def __post_init__(self) -> None:
        """Refuse what times can't be computed with."""
        self._check_columns()
        latency, rate = self.link_latency_ps, self.link_rate_bps
        good = (latency >= 0) & (latency <= MOST_LATENCY_PS) & (rate > 0) & np.isfinite(rate)
        for link in np.flatnonzero(~good)[:1].tolist():
            said = f"{rate[link]:g} bit/s and a latency of {format_time(int(latency[link]))}"
            raise TopologyError(
                f"the link {self.link_name(link)} has {said}; "
                f"a rate is above zero, a latency from 0 to {format_time(MOST_LATENCY_PS)}"
            )

    def _check_columns(self) -> None:
        """Refuse links that are of no node, or columns that are not of the same links."""
        if not 1 <= self.num_endpoints <= self.num_nodes:
            raise TopologyError(f"{self.name}: has {self.num_endpoints} endpoints of {self.num_nodes} nodes")
        columns = (self.link_dst, self.link_rate_bps, self.link_latency_ps)
        if any(column.shape != (self.num_links,) for column in columns):
            raise TopologyError(f"{self.name}: columns of links have unequal lengths")
        for end in (self.link_src, self.link_dst):
            for node in end[(end < 0) | (end >= self.num_nodes)][:1].tolist():
                raise TopologyError(f"{self.name}: a link is of node {node} of {self.num_nodes}, from 0 on")

    def _paths_of_switches(self, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """Paths of which some begin or end at switches."""
        from cosim.topology.routing import in_order

        theirs = (src >= self.num_endpoints) | (dst >= self.num_endpoints)
        if theirs.all():
            return self._with_switches.paths(self, src, dst, channel)
        parts = [np.flatnonzero(theirs), np.flatnonzero(~theirs)]
        found = [self.paths(src[at], dst[at], channel[at]) for at in parts]
        sizes, links = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        sizes += [np.diff(ptr) for ptr, _ in found]
        links += [some for _, some in found]
        return in_order(np.concatenate(parts), sizes, links)

    @cached_property
    def _with_switches(self) -> Paths:
        return self.routing.with_switches()

    @cached_property
    def node_number(self) -> dict[str, int]:
        """The number of each node, by its name."""
        return {name: number for number, name in enumerate(self.node_names)}

    @property
    def num_nodes(self) -> int:
        """Endpoints and switches."""
        return len(self.node_names)

    @property
    def num_links(self) -> int:
        """Directed links."""
        return len(self.link_src)

    def own_link(self, link: int) -> int:
        """The number here of a link of the whole.

        Raises
        ------
        TopologyError
            This part does not have it.
        """
        if self.link_number is None:
            return link
        found = np.flatnonzero(self.link_number == link)
        if not len(found):
            raise TopologyError(f"link {link} is not among the links of {self.name}")
        return int(found[0])

    def link_name(self, link: int) -> str:
        """``gpu0 -> leaf1``."""
        return f"{self.node_names[self.link_src[link]]} -> {self.node_names[self.link_dst[link]]}"

    def paths(self, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """Paths as CSR (ptr int64[n + 1], links int32), by this topology's routing; ends may be switches.

        Raises
        ------
        TopologyError
            A plug-in's routing gave no paths from these sources to these destinations.
        """
        farthest = max(np.maximum.reduce(src), np.maximum.reduce(dst)) if len(src) else 0
        if self.num_endpoints <= farthest < self.num_nodes:
            return self._paths_of_switches(src, dst, channel)
        return checked_paths(self.routing, self, src, dst, channel)


def check_endpoints(
    topology: Topology, src: I32, dst: I32, channel: I32, *, switches: bool = False
) -> tuple[I32, I32, I32]:
    """The three columns as contiguous int32; with ``switches`` flows may begin and end there, too.

    Raises
    ------
    ValueError
        The columns differ in length.
    TopologyError
        An endpoint that the topology does not have.
    """
    if not len(src) == len(dst) == len(channel):
        raise ValueError(f"paths: {len(src)} sources, {len(dst)} destinations, {len(channel)} channels")
    last = (topology.num_nodes if switches else topology.num_endpoints) - 1
    for what, column in (("source", src), ("destination", dst)):
        if len(column) and not 0 <= np.minimum.reduce(column) <= np.maximum.reduce(column) <= last:
            at = int(np.flatnonzero((column < 0) | (column > last))[0])
            raise TopologyError(
                f"{what} {int(column[at])} of flow {at} is not an endpoint of {topology.name}",
                hint=f"its endpoints are 0 to {last}",
            )
    return (
        np.ascontiguousarray(src, np.int32),
        np.ascontiguousarray(dst, np.int32),
        np.ascontiguousarray(channel, np.int32),
    )
