"""Leaf-spine: every leaf switch linked to every spine switch, endpoints or hosts below the leaves.

Between endpoints of different leaves there are as many equal-cost paths as spines. Source: the two-tier
folded Clos of A. Greenberg et al., VL2, doi:10.1145/1592568.1592576.
"""

from __future__ import annotations

from pydantic import Field

from cosim.context import Context
from cosim.topology.contract import Count
from cosim.topology.graph import Topology
from cosim.topology.tree import Tree


class LeafSpine(Tree):
    """Leaf and spine switches in two tiers, with oversubscription; endpoints or hosts below."""

    leaves: Count = Field(description="Leaf switches.")
    spines: Count = Field(description="Spine switches; each is linked to every leaf.")
    endpoints_per_leaf: Count = Field(description="Endpoints (GPUs) below each leaf; with rails, on average.")

    def edge_shape(self) -> tuple[int, int, int]:
        """Leaves, endpoints on each, spines."""
        return self.leaves, self.endpoints_per_leaf, self.spines

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        return 2 * self.leaves * (self.endpoints_per_leaf + self.spines) * self.planes

    def build(self, context: Context) -> Topology:
        """The topology."""
        builder = self.start()
        leaf = builder.add_switches(f"leaf{i}" for i in range(self.leaves))
        spine = builder.add_switches(f"spine{i}" for i in range(self.spines))
        dims, place_of = self.attach(builder, leaf)
        builder.connect(leaf[:, None], spine[None, :], self.up_bps(), self.up_ps())
        return builder.topology(
            f"leaf-spine {self.leaves}x{self.spines}",
            self.routing,
            context,
            dims=dims,
            place_of=place_of,
            planes=self.planes,
            info={"tiers": 2, "oversubscription": self.ratio()},
        )
