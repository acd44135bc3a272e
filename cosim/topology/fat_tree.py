"""k-ary fat-tree: k pods of k/2 edge and k/2 aggregation switches, and (k/2)^2 core switches.

Undiluted it has k^3/4 endpoints and (k/2)^2 equal-cost paths between pods. Core switch c is linked to
aggregation switch c // (k/2) of every pod. Source: M. Al-Fares, A. Loukissas, A. Vahdat, "A Scalable,
Commodity Data Center Network Architecture", doi:10.1145/1402958.1402967; its two-level routing tables are
not modelled, but ``dmodk`` spreads as they do.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from cosim.context import Context
from cosim.topology.contract import Count
from cosim.topology.graph import Topology
from cosim.topology.tree import Tree


class FatTree(Tree):
    """k-ary fat-tree in three tiers, oversubscribed at the edge if asked; endpoints or hosts below."""

    k: Annotated[int, Field(ge=2)] = Field(description="Ports of a switch, an even number.")
    endpoints_per_edge: Count | None = Field(
        None, description="Endpoints (GPUs) below each edge switch; omitted: k / 2."
    )

    @field_validator("k")
    @classmethod
    def _even(cls, k: int) -> int:
        if k % 2:
            raise ValueError(f"a fat-tree's k is even; {k - 1} or {k + 1}, not {k}")
        return k

    def edge_shape(self) -> tuple[int, int, int]:
        """Edge switches, endpoints on each, links up from each."""
        return self.k * self.k // 2, self.endpoints_per_edge or self.k // 2, self.k // 2

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        return 2 * (self.k**3 // 2 + self.k * self.k // 2 * self.edge_shape()[1]) * self.planes

    def build(self, context: Context) -> Topology:
        """The topology.

        The links above the aggregation switches have the rate of those below: only the edge is
        oversubscribed.
        """
        k, half = self.k, self.k // 2
        builder = self.start()
        edge = builder.add_switches(f"pod{p}.edge{i}" for p in range(k) for i in range(half))
        aggregation = builder.add_switches(f"pod{p}.agg{i}" for p in range(k) for i in range(half))
        core = builder.add_switches(f"core{i}" for i in range(half * half))
        dims, place_of = self.attach(builder, edge)
        rate, latency = self.up_bps(), self.up_ps()
        builder.connect(edge.reshape(k, half, 1), aggregation.reshape(k, 1, half), rate, latency)
        above = np.arange(half * half).reshape(half, half)
        builder.connect(aggregation.reshape(k, half, 1), core[above][None, :, :], rate, latency)
        return builder.topology(
            f"fat-tree k={k}",
            self.routing,
            context,
            dims=dims,
            place_of=place_of,
            planes=self.planes,
            info={"tiers": 3, "oversubscription": self.ratio()},
        )
