"""A network of a spec, looked at before a run goes by it: somebody else's may be none."""

from __future__ import annotations

from cosim.answers import check_answer, is_foreign
from cosim.context import Context
from cosim.errors import InputError
from cosim.network.contract import NetworkSpec
from cosim.network.simulator import Capabilities, NetworkSimulator


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
