"""Rows of subflows and of their hops, as connections get paths; they are never taken back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.congestion.state import CongestionState
from cosim.network.flows import I32, I64
from cosim.topology.graph import Topology

_NONE = -1


class SubflowRows:
    """Adds rows to ``subflows``, ``hops`` and what runs beside them."""

    def __init__(self, fluid: CongestionState, topology: Topology, packet_bytes: int, back: I64) -> None:
        """``back``: of each link the one of the same cable the other way, where acknowledgements wait behind
        data; -1: they don't.
        """
        self._fluid = fluid
        self._topology = topology
        self._packet_bits = packet_bytes * 8
        self._back = back
        self._traced = bool(fluid.settings["traced"][0])
        self._credits = bool(fluid.settings["credits"][0])
        self._subflows = 0
        self._hops = 0

    def add(self, conn: I64, begin: I64, count: I64, links: I32) -> I32:
        """The numbers of new subflows, one of each connection ``conn``, whose ``count`` links are in
        ``links`` from ``begin`` on.
        """
        fluid, old, total = self._fluid, self._hops, int(count.sum())
        ends = np.cumsum(count)
        heads = ends - count
        has = count > 0
        self._hops += total
        for name in ("hops", "sights", *(("outs", "subflow_of") if self._traced else ())):
            fluid.lengthen(name, self._hops)
        link = links[np.repeat(begin, count) + np.arange(total) - np.repeat(heads, count)]
        hops = fluid.hops[old : self._hops]
        hops["link"] = hops["port"] = link
        hops["conn"] = np.repeat(conn, count)
        hops["leads"][heads[has]] = self._subflows + 1 + np.flatnonzero(has)
        self._chain_backs(hops, old)
        packet = np.ceil(self._packet_bits * 1e12 / self._topology.link_rate_bps[link])
        latency = self._topology.link_latency_ps[link].astype(np.float64)
        sums = np.concatenate([np.zeros((1, 2)), np.cumsum(np.stack([latency, packet], axis=1), axis=0)])
        both = sums[ends] - sums[heads]
        first, self._subflows = self._subflows, self._subflows + len(conn)
        beside = {"moved": self._traced, "credits": self._credits}
        for name in ("subflows", *(name for name, used in beside.items() if used)):
            fluid.lengthen(name, self._subflows)
        if self._traced:
            fluid.subflow_of[old : self._hops] = np.repeat(np.arange(first, self._subflows), count)
        mine = fluid.subflows[first : self._subflows]
        mine["hop"], mine["hops"], mine["conn"], mine["next"] = old + heads, count, conn, _NONE
        mine["latency"] = both[:, 0]
        mine["base"] = 2 * both[:, 0] + both[:, 1]
        mine["store"][has] = both[has, 1] - packet[heads[has]]
        return np.arange(first, self._subflows, dtype=np.int32)

    def _chain_backs(self, added: NDArray[Any], first: int) -> None:
        """Where acknowledgements of new hops (the first of them is number ``first``) wait behind data."""
        added["back"] = back = self._back[added["link"]]
        chained = np.flatnonzero(back != _NONE)
        chained = chained[np.argsort(back[chained], kind="stable")]
        back, first_of = back[chained], self._fluid.links["back_first"]
        is_last = np.diff(back, append=_NONE) != 0
        hop = chained + first
        self._fluid.sights["back_next"][hop] = np.where(is_last, first_of[back], np.roll(hop, -1))
        is_first = np.diff(back, prepend=_NONE) != 0
        first_of[back[is_first]] = hop[is_first]
