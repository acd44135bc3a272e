"""Field types of specs that name a network: ``fair_share``, ``{model: ...}``, ``{simulator: ns3}``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from cosim.network.contract import NetworkSpec
from cosim.plugin_file import PLUGIN
from cosim.registry import Named

ELSEWHERE = {"simulator", "command", "address"}
"""Keys by which a simulator elsewhere is known without ``model: remote``."""


def _elsewhere(network: Any) -> Any:
    """``{simulator: ns3}``, ``{command: ...}`` and ``{address: ...}`` are short for ``model: remote``."""
    if isinstance(network, dict) and not network.keys() & {"model", PLUGIN} and network.keys() & ELSEWHERE:
        return {"model": "remote", **network}
    return network


NetworkName = Annotated[NetworkSpec, Named("cosim.networks"), BeforeValidator(_elsewhere)]
"""Field type: any network that a scenario can name."""
