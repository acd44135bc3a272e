"""Field types of specs that name a network: ``fair_share``, ``{model: ...}``, ``{simulator: ns3}``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from cosim.answers import check_answer, is_foreign
from cosim.context import Context
from cosim.errors import InputError
from cosim.network.contract import NetworkSpec
from cosim.network.simulator import Capabilities, NetworkSimulator
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


def made_network(spec: NetworkSpec, context: Context) -> NetworkSimulator:
    """What ``spec`` builds.

    What it says of itself is looked at where it runs in this process: asking starts a simulator elsewhere,
    which is for the run, with :func:`check_described`.

    Raises
    ------
    InputError
        A plug-in gave no network, one in front of nothing, or one that doesn't say what it can do.
    """
    network = spec.build(context)
    check_answer(spec, "build", network, NetworkSimulator)
    if is_foreign(type(network)):
        from cosim.network.forwarding import ForwardingNetwork

        if isinstance(network, ForwardingNetwork) and not hasattr(network, "inner"):
            raise InputError(
                f"{type(network).__name__}.__init__ left it in front of no network",
                hint="call super().__init__(inner) in it, with the other network",
            )
    if not network.elsewhere:
        check_described(network)
    return network


def check_described(network: NetworkSimulator) -> None:
    """Refuse somebody else's network that doesn't say what it can do.

    Raises
    ------
    InputError
        Says what it gave, and where in it what is wrong.
    """
    if is_foreign(type(network)):
        check_answer(network, "describe", network.describe(), Capabilities)
