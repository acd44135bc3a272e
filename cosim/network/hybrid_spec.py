"""What a scenario says of a hybrid: ``{model: hybrid, scale_up: fair_share, scale_out: ns3}``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field, field_validator

from cosim.context import Context
from cosim.errors import InputError
from cosim.network.compiled import CompiledNetwork
from cosim.network.compiled_hybrid import CompiledHybridNetwork
from cosim.network.contract import NetworkSpec
from cosim.network.flows import I32
from cosim.network.hybrid import HybridNetwork
from cosim.network.named import ELSEWHERE, NetworkName, made_network
from cosim.network.simulator import NetworkSimulator
from cosim.plugin_file import PLUGIN
from cosim.topology.graph import Topology
from cosim.topology.scale_up import domains, scale_up_links


def _or(name: str) -> BeforeValidator:
    """A mapping without a name has settings of ``name``."""

    def complete(network: Any) -> Any:
        if isinstance(network, dict) and not network.keys() & {"model", PLUGIN, *ELSEWHERE}:
            return {"model": name, **network}
        return network

    return BeforeValidator(complete)


def hybrid_of(scale_up: NetworkSimulator, scale_out: NetworkSimulator) -> NetworkSimulator:
    """The two as one: in one compiled loop, where both have one."""
    if isinstance(scale_up, CompiledNetwork) and isinstance(scale_out, CompiledNetwork):
        return CompiledHybridNetwork(scale_up, scale_out)
    return HybridNetwork(scale_up, scale_out)


class Hybrid(NetworkSpec):
    """Two networks in one run: scale-up domains (NVLink) in one, everything between them in the other."""

    needs_scale_up: ClassVar[bool] = True
    balancing: ClassVar[str] = "give it to scale_up or scale_out, where that is fair_share or congestion"

    scale_up: Annotated[NetworkName, _or("fair_share")] = Field(
        "fair_share", validate_default=True, description="network of the links within scale-up domains"
    )
    scale_out: Annotated[NetworkName, _or("ns3")] = Field(
        "ns3", validate_default=True, description="network of all other links"
    )

    @field_validator("scale_up", "scale_out")
    @classmethod
    def _not_again(cls, network: NetworkSpec) -> NetworkSpec:
        if isinstance(network, Hybrid):
            raise ValueError("a hybrid's networks are single ones")
        return network

    def shares_links(self) -> bool:
        """Where both do."""
        return self.scale_up.shares_links() and self.scale_out.shares_links()

    def shares_by_weight(self) -> bool:
        """In either."""
        return self.scale_up.shares_by_weight() or self.scale_out.shares_by_weight()

    def chooses_paths(self) -> bool:
        """Either does."""
        return self.scale_up.chooses_paths() or self.scale_out.chooses_paths()

    def uses_seed(self) -> bool:
        """Either does."""
        return self.scale_up.uses_seed() or self.scale_out.uses_seed()

    def simulator_build(self) -> str | None:
        """The builds of both parts."""
        builds = [network.simulator_build() for network in (self.scale_up, self.scale_out)]
        return None if None in builds else " ".join(filter(None, builds))

    def check_topology(self, topology: Topology) -> None:
        """Refuse a topology that has no scale-up domains. See :class:`NetworkSpec`."""
        scale_up_links(topology)

    def idle_on(self, topology: Topology, jobs: Sequence[I32]) -> list[tuple[str, str]]:
        """(field, why) of a network that no job can send anything through; ``jobs`` are their endpoints."""
        domain = domains(topology)
        places = [np.unique(endpoints) for endpoints in jobs]
        spans = [len(np.unique(domain[mine])) for mine in places]
        idle = []
        if all(count == len(mine) for count, mine in zip(spans, places, strict=True)):
            idle.append(("scale_up", "no job has two ranks in one scale-up domain"))
        if all(count == 1 for count in spans):
            idle.append(("scale_out", "every job sits within one scale-up domain"))
        return idle

    def build(self, context: Context) -> NetworkSimulator:
        """A fresh network.

        Raises
        ------
        InputError
            Both are simulators elsewhere.
        """
        networks = made_network(self.scale_up, context), made_network(self.scale_out, context)
        if all(network.elsewhere for network in networks):
            raise InputError(
                "one network of a hybrid may be a simulator elsewhere, not both: "
                "the other has to say when its next completion comes",
                hint="for example scale_up: fair_share",
            )
        return hybrid_of(*networks)
