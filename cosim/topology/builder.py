"""Builder of topologies that are not grids: nodes by name, links by the array, then a routed topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cosim.context import Context
from cosim.topology.contract import Fabric, RoutingSpec
from cosim.topology.graph import I64, Topology
from cosim.topology.host_shape import HostShape
from cosim.topology.traced import link_column


class Builder:
    """Collects nodes and directed links; the endpoints come first.

    Links are numbered in the order in which they are added.
    """

    def __init__(self, endpoints: Iterable[str]) -> None:
        self.names = list(endpoints)
        self.num_endpoints = len(self.names)
        self._links: list[tuple[I64, I64, float, int, int, bool]] = []

    def add_switches(self, names: Iterable[str]) -> I64:
        """Add nodes that forward; their numbers, int64."""
        first = len(self.names)
        self.names += names
        return np.arange(first, len(self.names), dtype=np.int64)

    def link(
        self,
        src: Any,
        dst: Any,
        rate_bps: float,
        latency_ps: int,
        cost: int = 1,
        *,
        scale_up: bool = False,
    ) -> None:
        """Add one-way links.

        Parameters
        ----------
        src, dst
            Numbers of nodes, which broadcast against each other.
        rate_bps, latency_ps
            Of each link: bits per second, and picoseconds to its far end.
        cost
            What routings add up; paths of the least sum are equal.
        scale_up
            Whether they are links of a scale-up domain, as NVLinks are.
        """
        a, b = np.broadcast_arrays(np.asarray(src, np.int64), np.asarray(dst, np.int64))
        self._links.append((a.ravel(), b.ravel(), rate_bps, latency_ps, cost, scale_up))

    def connect(
        self,
        src: Any,
        dst: Any,
        rate_bps: float,
        latency_ps: int,
        cost: int = 1,
        *,
        scale_up: bool = False,
    ) -> None:
        """Add links both ways, as :meth:`link`: first all from ``src`` to ``dst``, then all back."""
        self.link(src, dst, rate_bps, latency_ps, cost, scale_up=scale_up)
        self.link(dst, src, rate_bps, latency_ps, cost, scale_up=scale_up)

    def topology(
        self,
        name: str,
        routing: RoutingSpec,
        context: Context,
        *,
        endpoints_forward: bool = False,
        dims: tuple[int, ...] = (),
        place_of: I64 | None = None,
        info: Mapping[str, Any] | None = None,
        hosts: HostShape | None = None,
        planes: int = 1,
    ) -> Topology:
        """The topology of what was added.

        Parameters
        ----------
        name
            What pages call it.
        routing, context
            The routing, and what the topology is built in.
        endpoints_forward
            Whether paths may go through endpoints.
        dims
            Endpoints along each dimension; empty: one dimension.
        place_of
            int64[endpoints]: numbers of endpoints along the edge switches; None: their own.
        info
            What was read, ignored and assumed, for the page.
        hosts
            What a host is, where all are alike.
        planes
            Each plane has switches and links of its own, but for scale-up links and switches that have no
            others; every endpoint has its links in each plane.
        """
        if planes > 1:
            name = f"{planes} planes of {name}"
            self._copy_planes(planes)
        counts = [len(entry[0]) for entry in self._links]

        def column(index: int, dtype: Any) -> Any:
            values = [entry[index] for entry in self._links]
            return np.repeat(np.array(values, dtype), counts)

        def nodes(index: int) -> Any:
            parts: list[Any] = [entry[index] for entry in self._links]
            return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int32)

        cost, scale_up = column(4, np.int32), column(5, np.bool_)
        uniform = len(cost) == 0 or bool((cost == cost[0]).all())
        fabric = Fabric((), endpoints_forward, None if uniform else cost, place_of)
        return Topology(
            name=name,
            num_endpoints=self.num_endpoints,
            node_names=tuple(self.names),
            link_src=nodes(0),
            link_dst=nodes(1),
            link_rate_bps=link_column("link_rate_bps", [one[2] for one in self._links], counts),
            link_latency_ps=link_column("link_latency_ps", [one[3] for one in self._links], counts),
            routing=routing.build(fabric, context),
            dims=dims or (self.num_endpoints,),
            info=dict(info or {}),
            scale_up=scale_up if scale_up.any() else None,
            hosts=hosts,
        )

    def _copy_planes(self, planes: int) -> None:
        """Have everything outside of scale-up domains ``planes`` times."""
        n = self.num_endpoints
        copied = np.zeros(len(self.names), np.bool_)
        for src, dst, *_, scale_up in self._links:
            if not scale_up:
                copied[src] = copied[dst] = True
        copied[:n] = False
        names = [name for name, many in zip(self.names, copied, strict=True) if not many]
        number = np.cumsum(~copied) - 1
        per_plane = int(copied.sum())
        own = len(names) + np.cumsum(copied) - 1
        switches = [name for name, many in zip(self.names, copied, strict=True) if many]
        self.names = [*names, *(f"plane{p}.{name}" for p in range(planes) for name in switches)]
        links = self._links
        self._links = []
        for src, dst, rate_bps, latency_ps, cost, scale_up in links:
            for plane in range(1 if scale_up else planes):
                at = np.where(copied, own + plane * per_plane, number)
                self._links.append((at[src], at[dst], rate_bps, latency_ps, cost, scale_up))
