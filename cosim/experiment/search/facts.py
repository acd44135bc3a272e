"""What is known of a design before it is run: those facts that are asked for."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from cosim.errors import InputError
from cosim.experiment.build import Built
from cosim.experiment.scenario import Scenario
from cosim.experiment.search.cost import ClusterCost, CostTable, cost_of
from cosim.results.quantities import DesignFacts
from cosim.topology.graph import Topology
from cosim.workload.contract import WorkloadSpec


class FactFinder:
    """Finds facts of points, keeping what several have in common."""

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

    def _sum(self, scenario: Scenario, built: Built, what: str) -> int:
        """Of all jobs: tokens together, memory of the fullest."""
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
