"""Expander: switches linked to one another at random, each to equally many (Jellyfish).

A regular graph drawn by the seed; the first of its draws that is connected. Source: A. Singla, C.-Y. Hong, L.
Popa and P. B. Godfrey, "Jellyfish: Networking Data Centers Randomly", NSDI 2012; the draw is that of J. H.
Kim and V. H. Vu, "Generating random regular graphs", STOC 2003, doi:10.1145/780542.780576, as networkx has
it. Not modelled: routing over the k shortest paths; ``ecmp`` has those of least hops.
"""

from __future__ import annotations

from typing import Self

import networkx as nx
import numpy as np
from pydantic import Field, model_validator

from cosim.context import Context
from cosim.errors import TopologyError
from cosim.topology.contract import Count, Routing
from cosim.topology.graph import Topology
from cosim.topology.routings import EcmpSpec
from cosim.topology.switch_fabric import SwitchFabric

_DRAWS = 64


class Expander(SwitchFabric):
    """Switches linked to one another at random, each to equally many"""

    switches: int = Field(ge=2, description="Switches.")
    degree: Count = Field(description="Links of each switch to others.")
    endpoints_per_switch: Count = Field(description="Endpoints (GPUs) on each switch.")
    seed: int | None = Field(None, ge=0, description="Of the links; omitted: the run's seed.")
    routing: Routing = Field(EcmpSpec(), description="ecmp or shortest.")

    @model_validator(mode="after")
    def _regular(self) -> Self:
        if self.degree >= self.switches:
            raise ValueError(
                f"{self.switches} switches have at most {self.switches - 1} others each, not {self.degree}"
            )
        if self.degree * self.switches % 2:
            raise ValueError(
                f"{self.switches} switches can't have {self.degree} links each, as a link has two ends; "
                f"make one of the two even"
            )
        return self

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        return self.switches * (2 * self.endpoints_per_switch + self.degree) * self.planes

    def uses_seed(self) -> bool:
        """Without a seed of its own."""
        return self.seed is None or super().uses_seed()

    def build(self, context: Context) -> Topology:
        """The topology.

        Raises
        ------
        TopologyError
            No draw is connected: degrees below three often aren't.
        """
        seed = context.seed if self.seed is None else self.seed
        draws = (
            nx.random_regular_graph(self.degree, self.switches, seed=seed * _DRAWS + draw)
            for draw in range(_DRAWS)
        )
        graph = next((each for each in draws if nx.is_connected(each)), None)
        if graph is None:
            raise TopologyError(
                f"none of {_DRAWS} random graphs of {self.switches} switches with {self.degree} links each "
                "is connected",
                hint="degree 3 or more nearly always is",
            )
        builder, number = self.start([f"switch{i}" for i in range(self.switches)], self.endpoints_per_switch)
        ends = np.array(sorted(tuple(sorted(edge)) for edge in graph.edges))
        builder.connect(number[ends[:, 0]], number[ends[:, 1]], *self.between)
        name = f"expander {self.switches}x{self.degree}"
        return builder.topology(name, self.routing, context, planes=self.planes)
