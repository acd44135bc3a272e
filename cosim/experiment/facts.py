"""Facts of a scenario that are known before it runs: price, power, rates, memory and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.errors import InputError
from cosim.experiment.build import Built, build
from cosim.experiment.scenario import Scenario
from cosim.experiment.workloads import KEPT
from cosim.results.measures import MEASURES, Alone
from cosim.results.quantities import QUANTITIES, DesignFacts, check_quantity, quantity_of
from cosim.results.summary import Summary
from cosim.topology.graph import Topology
from cosim.workload.contract import WorkloadSpec

if TYPE_CHECKING:
    from cosim.experiment.cost import ClusterCost, CostTable


def measured(
    names: Sequence[str],
    scenario: Scenario,
    summary: Summary,
    alone: Alone | None = None,
    cost: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """What a run has of each quantity, in picoseconds, bytes, bits per second, dollars, watts or joules.

    Parameters
    ----------
    names
        Of :data:`~cosim.results.quantities.QUANTITIES`.
    scenario, summary
        The run.
    alone
        Mean iteration of each job by itself, picoseconds, for what needs it.
    cost
        What parts cost and draw, over the table that comes with cosim.

    Raises
    ------
    InputError
        There is no such quantity, or it isn't known of this run.
    """
    check_names(names)
    found: dict[str, float] = {}
    for name in dict.fromkeys(name if name in MEASURES else QUANTITIES[name].needs for name in names):
        if name and MEASURES[name].needs_alone and alone is None:
            raise InputError(
                f"{name} is held against each job by itself", hint="run with --alone, or run.study('alone')"
            )
        if name:
            found[name] = MEASURES[name].of(summary, alone or {})
    wanted = {fact for name in names if name not in MEASURES for fact in QUANTITIES[name].facts}
    from cosim.experiment.cost import read_table

    facts = FactFinder(wanted, read_table(cost)).of(scenario) if wanted else DesignFacts()
    return {name: quantity_of(name, facts, found) for name in names}


def check_names(names: Sequence[str]) -> None:
    """See that all are quantities.

    Raises
    ------
    InputError
        One isn't; says which there are.
    """
    try:
        for name in names:
            check_quantity(name)
    except ValueError as error:
        raise InputError(str(error)) from None


class FactFinder:
    """Finds facts of scenarios, keeping what several have in common."""

    def __init__(self, wanted: AbstractSet[str], table: CostTable) -> None:
        self._wanted, self._table = wanted, table
        self._costs: dict[str, ClusterCost] = {}
        self._workloads: dict[tuple[str, str], int] = {}

    def facts(self, scenario: Scenario, built: Built) -> DesignFacts:
        """Those that are wanted; the others are 0.

        Raises
        ------
        InputError
            What a GPU costs isn't known, or a job says neither its memory nor its tokens.
        """
        if not self._wanted:
            return DesignFacts()
        from cosim.experiment.cost import ClusterCost, cost_of

        cost = ClusterCost(0.0, 0.0)
        if self._wanted & {"price", "power"}:
            gpus = [job.runs_on(scenario.context) for job in scenario.jobs]
            placed = [job.endpoints.tobytes() for job in built.jobs]
            key = repr((scenario.topology, gpus, placed))
            if key not in self._costs:
                self._costs[key] = cost_of(self._table, scenario, built)
            cost = self._costs[key]
        topology = built.topology
        return DesignFacts(
            price=cost.price,
            power=cost.power,
            total_rate=float(topology.link_rate_bps.sum()),
            endpoint_rate=_endpoint_rate(topology),
            endpoints=topology.num_endpoints,
            memory=self._sum(scenario, built, "memory"),
            tokens=self._sum(scenario, built, "tokens"),
        )

    def of(self, scenario: Scenario) -> DesignFacts:
        """Build a scenario and find its facts.

        Raises
        ------
        InputError
            As :meth:`facts`, or it can't be built.
        """
        built = build(scenario, KEPT)
        built.network.close()
        return self.facts(scenario, built)

    def _sum(self, scenario: Scenario, built: Built, what: str) -> int:
        """Sum the tokens of all jobs, or take the memory of the job that needs most."""
        if what not in self._wanted:
            return 0
        found = []
        for job in scenario.jobs:
            key = what, repr(job.workload)
            if key not in self._workloads and isinstance(job.workload, WorkloadSpec):
                spec = job.workload
                request = next(one.workload.request for one in built.jobs if one.name in job.names())
                answered = request.tokens if request is not None else 0
                self._workloads[key] = (
                    spec.memory_needed() if what == "memory" else spec.tokens_done() or answered
                )
            if not self._workloads.get(key):
                raise InputError(f"{what} of the job {job.name} is not known: its workload doesn't say")
            found.append(self._workloads[key] * (job.count if what == "tokens" else 1))
        return max(found) if what == "memory" else sum(found)


def _endpoint_rate(topology: Topology) -> float:
    out = topology.link_src < topology.num_endpoints
    return float(np.sum(topology.link_rate_bps[out])) / topology.num_endpoints
