"""The networks of the reference engine: each model as its text says it, in plain Python, behind the seam.

================  ======================================================================
``dependencies``  who waits for whom among the flows of a group, and what may start now
``plain``         the seam around a model: flows in, completions out, up to a horizon
``analytical``    ``congestion_unaware`` and ``congestion_aware``
``fair_share``    max-min fair sharing, with weights and strict priorities
``changing``      links that fail, slow down and come back, and routes that follow
``releasing``     dependent flows started in front of a network that can't do so
``drains``        what drains next, where rates change what was expected
================  ======================================================================

Nothing here is fast: a message is an object, an instant is a loop. The kernel gives the same times.
"""

from __future__ import annotations

from cosim.network.reference.analytical import PlainAware, PlainUnaware
from cosim.network.reference.changing import ChangingAware, ChangingUnaware
from cosim.network.reference.fair_share import PlainFairShare
from cosim.network.reference.plain import PlainNetwork
from cosim.topology.graph import Topology


def plain_network(name: str, topology: Topology) -> PlainNetwork | None:
    """The model of this name in plain Python; None: there is none."""
    changes = topology.changes is not None
    models: dict[str, type[PlainNetwork]] = {
        "congestion_unaware": ChangingUnaware if changes else PlainUnaware,
        "congestion_aware": ChangingAware if changes else PlainAware,
        "fair_share": PlainFairShare,
    }
    return models[name]() if name in models else None
