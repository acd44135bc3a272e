"""Shipped scenarios told in other words: by what names, and in what units, changes no time.

Of a sweep its first run. :func:`renamed` is of each scenario as it stands; :func:`doubled` is of
``fair_share``, where nothing is counted in packets, of collectives that don't choose by size, and without a
scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cosim
from cosim.engine.records import JobInfo, Records
from cosim.experiment.build import Built, build
from cosim.experiment.scenario import Scenario
from cosim.experiment.simulate import simulate
from cosim.topology.graph import I32, I64, Paths, Topology
from tests.examples.answers import SHORT, SWEEPS
from tests.lab.fuzz.worlds import at_twice_the_rates, sized


@dataclass(frozen=True)
class Renamed(Paths):
    """The paths of a topology, by other names of its endpoints: ``old[new name]``."""

    there: Topology
    old: I32

    @property
    def name(self) -> str:
        return self.there.routing.name

    @property
    def endpoints_forward(self) -> bool:
        return self.there.routing.endpoints_forward

    @property
    def has_alternatives(self) -> bool:
        return self.there.routing.has_alternatives

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        del topology
        return self.there.routing.paths(self.there, self.old[src], self.old[dst], channel)

    def around(
        self, topology: Topology, dead: NDArray[np.bool_], src: I32, dst: I32, channel: I32
    ) -> tuple[I64, I32]:
        del topology
        return self.there.routing.around(self.there, dead, self.old[src], self.old[dst], channel)

    def alternatives(self, topology: Topology, src: I32, dst: I32, most: int) -> tuple[I64, I64, I32]:
        del topology
        return self.there.routing.alternatives(self.there, self.old[src], self.old[dst], most)


def scenario_of(path: Path) -> Scenario:
    """Two iterations of a scenario, or of the first run of a sweep."""
    if path in SWEEPS:
        sweep = cosim.Sweep.load(path, SHORT.get(path.stem, ()))
        found = sweep.trial(*next(sweep.combinations()))
    else:
        found = cosim.load(path)
    few = {f"jobs[{k}].iterations": min(job.iterations, 2) for k, job in enumerate(found.jobs)}
    return found.with_settings(few)


def run(scenario: Scenario, built: Built) -> Records:
    return simulate(scenario, built, messages=False).records


def names(topology: Topology) -> I32:
    """New numbers of its nodes: those of endpoints change along each dimension, so that hosts stay hosts."""
    draw = np.random.default_rng(1)
    moved = [draw.permutation(size) for size in reversed(topology.dims)]
    nodes = np.arange(topology.num_nodes, dtype=np.int32)
    grid = nodes[: topology.num_endpoints].reshape([len(one) for one in moved])
    return np.concatenate([grid[np.ix_(*moved)].reshape(-1), nodes[topology.num_endpoints :]])


def renamed(scenario: Scenario) -> tuple[Records, Records]:
    """As it is, and with its endpoints called otherwise, links and paths as they were."""
    one, other = build(scenario), build(scenario)
    there, new = other.topology, names(other.topology)
    old = np.argsort(new).astype(np.int32)
    topology = replace(
        there,
        link_src=new[there.link_src],
        link_dst=new[there.link_dst],
        node_names=tuple(there.node_names[node] for node in old),
        routing=Renamed(there, old),
    )
    jobs = tuple(replace(job, endpoints=new[job.endpoints]) for job in other.jobs)
    return run(scenario, one), run(scenario, replace(other, topology=topology, jobs=jobs))


_RINGS = {
    "scheduler": None,
    "network": "fair_share",
    "collectives.all_reduce": "ring",
    "collectives.reduce_scatter": "ring",
    "collectives.all_gather": "ring",
    "collectives.all_to_all": "direct",
    "collectives.broadcast": "binomial_tree",
}


def doubled(scenario: Scenario) -> tuple[Records, Records]:
    """By rings over ``fair_share``; and twice the bytes on links of twice the rate.

    Sizes are multiples of what each rank and split has 64 bytes of, so that none is rounded.
    """
    scenario = scenario.with_settings(_RINGS)
    built, other = build(scenario), build(scenario)

    def times(job: JobInfo, much: int) -> JobInfo:
        unit = 64 * built.planner.config.splits * job.workload.world_size
        size = lambda op: much * unit * max(1, -(-op.size_bytes // unit))  # noqa: E731
        return replace(job, workload=sized(job.workload, size))

    one = replace(built, jobs=tuple(times(job, 1) for job in built.jobs))
    two = replace(
        other,
        topology=replace(other.topology, link_rate_bps=2 * other.topology.link_rate_bps),
        jobs=tuple(times(job, 2) for job in other.jobs),
        planner=at_twice_the_rates(other.planner),
    )
    return run(scenario, one), run(scenario, two)
