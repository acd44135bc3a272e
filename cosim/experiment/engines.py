"""Which engine replays a scenario: the kernel, or the reference where it is asked for or there is no
kernel.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Literal

from cosim.answers import is_foreign
from cosim.errors import InputError
from cosim.experiment.scenario import Scenario
from cosim.kernel.library import kernel
from cosim.network.simulator import NetworkSimulator
from cosim.topology.graph import Topology

EngineName = Literal["kernel", "reference"]
_NAMES = "kernel", "reference"
_log = logging.getLogger("cosim")


def engine_for(asked: str | None) -> EngineName:
    """The engine that is asked for; else the kernel, where it can be loaded, and a line where it can't.

    Raises
    ------
    InputError
        There is no engine of this name, or no kernel.
    """
    if asked is not None and asked not in _NAMES:
        raise InputError(f"there is no engine {asked!r}", hint=f"there are {' and '.join(_NAMES)}")
    if asked == "reference":
        return "reference"
    why = kernel.why_not()
    if why is None:
        return "kernel"
    if asked == "kernel":
        raise InputError(why, hint="engine reference runs without it, slower")
    _say_why(why)
    return "reference"


@cache
def _say_why(why: str) -> None:
    """Once: a sweep runs many."""
    _log.warning("%s; the reference engine runs meanwhile: the same results, but slowly", why)


def plain(scenario: Scenario, network: NetworkSimulator, topology: Topology) -> NetworkSimulator:
    """A scenario's network as the reference engine takes it: the model in plain Python where there is one,
    else as it is, behind the seam.

    Raises
    ------
    InputError
        It is one that needs the kernel, which can't be loaded.

    """
    from cosim.network.reference import plain_network

    spec = scenario.network
    model = None if spec.chooses_paths() else plain_network(spec.name, topology)
    if model is not None:
        return model
    why = kernel.why_not()
    if why is None or network.elsewhere or is_foreign(type(network)):
        return network
    what = f"{spec.name} with a load balancer" if spec.chooses_paths() else spec.name
    raise InputError(
        f"network {what} needs the kernel, and {why}",
        hint="without it there are congestion_unaware, congestion_aware and fair_share without a balancer",
    )
