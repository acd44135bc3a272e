"""A balancer as a setting of a network: ``balancer: spray``, ``{kind: flowlet, gap: 50us}``, ``{plugin:
my.py:Mine}``.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from cosim.errors import TopologyError
from cosim.network.balancing.balancers.ecmp import Ecmp
from cosim.network.balancing.contract import Balancer
from cosim.registry import Named
from cosim.topology.graph import Topology

BalancerName = Annotated[Balancer, Named("cosim.balancers")]
"""Field type of a network."""


def balancer_field() -> Any:
    """The field of a network that has balancers: by default each connection keeps its path."""
    return Field(
        default_factory=Ecmp, description="what chooses among equal-cost paths while the run goes on"
    )


def check_balancer(balancer: Balancer, topology: Topology) -> None:
    """Refuse a topology on which there is nothing to choose.

    Raises
    ------
    TopologyError
        Its routing knows one path for each pair.
    """
    if balancer.chooses and not balancer.detours and not topology.routing.has_alternatives:
        raise TopologyError(
            f"network.balancer: {type(balancer).__name__} has nothing to choose: the routing "
            f"{topology.routing.name} knows one path for each pair",
            hint="take topology.routing: shortest or ecmp, or no balancer",
        )
