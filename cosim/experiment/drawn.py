"""Whether anything of a scenario is drawn from its seed: where nothing is, every seed gives the same run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from cosim.experiment.scenario import Scenario
from cosim.spec import Spec
from cosim.topology.contract import TopologySpec


def draws(scenario: Scenario) -> bool:
    """Whether a part says that it draws from the seed."""
    return fabric_draws(scenario) or any(one.uses_seed() for one in (*scenario.jobs, *scenario.events))


def fabric_draws(scenario: Scenario) -> bool:
    """The same of the network and the topology, whatever is run on them."""
    topology = scenario.topology
    return scenario.network.uses_seed() or (isinstance(topology, TopologySpec) and topology.uses_seed())


def may_draw(scenario: Scenario) -> bool:
    """The same, where plug-ins are not taken at their silence: one may draw and not say so."""
    return draws(scenario) or any(not _is_ours(one) for one in _specs(scenario))


def may_use_seed(spec: Spec) -> bool:
    """Whether a spec or one within it says that it uses the seed, or is a plug-in's and may."""
    return any(one.uses_seed() or not _is_ours(one) for one in _specs(spec))


def _is_ours(one: Spec) -> bool:
    return type(one).__module__.split(".")[0] == __name__.split(".")[0]


def _specs(value: Any) -> Iterator[Spec]:
    """A value, if it is a spec, and those within it."""
    if isinstance(value, Spec):
        yield value
    if isinstance(value, BaseModel):
        for _, inner in value:
            yield from _specs(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _specs(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _specs(inner)
