"""What a scenario's ``record`` asks a network for over time: links, jobs and pairs of endpoints by name."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from cosim.engine.records import I64, Records
from cosim.errors import ScenarioError, TopologyError
from cosim.experiment.build import Built
from cosim.experiment.scenario import Scenario
from cosim.network.simulator import NetworkSimulator
from cosim.plugin_file import at
from cosim.registry import nearest
from cosim.topology.graph import Topology
from cosim.units import format_time

if TYPE_CHECKING:
    from cosim.engine.series import Watched


def watched(scenario: Scenario, built: Built) -> Watched | None:
    """None where nothing is asked for.

    Raises
    ------
    ScenarioError, TopologyError
        The network doesn't say, a name is none, or there is no room for as many.
    """
    record, topology = scenario.record, built.topology
    if not record.queues and not record.rates:
        return None
    _check_network(scenario, built.network)
    with at(scenario.locate("record", "queues"), TopologyError):
        from cosim.fabric.links import links_between

        parts = [part for name in record.queues for part in links_between(topology, name)]
    links = np.unique(np.array([link for part in parts for link in part], np.int64))
    with at(scenario.locate("record", "queues")):
        built.network.check_queues(topology, links)
    jobs = [job.name for job in built.jobs]
    chosen = [k for k, job in enumerate(jobs) if any(fnmatchcase(job, name) for name in record.rates)]
    pairs = _pairs(scenario, topology, jobs)
    ends = [f"{topology.node_names[src]} -> {topology.node_names[dst]}" for src, dst in pairs.tolist()]
    names = (*(jobs[k] for k in chosen), *ends)
    from cosim.engine.series import MOST_SERIES, Watched

    found = Watched(record.every, links, np.array(chosen, np.int64), pairs, names)
    if found.num_series > MOST_SERIES:
        raise ScenarioError(
            f"{len(links):,} links and {len(names):,} rates are more than {MOST_SERIES:,} series",
            location=scenario.locate("record"),
            hint="name fewer: leaf0 -> spine*, or a job by its name",
        )
    return found


def coarser(scenario: Scenario, records: Records) -> list[str]:
    """What to say where samples are farther apart than was asked for."""
    series = records.series
    if series is None or series.every_ps == series.asked_ps:
        return []
    place = scenario.locate("record", "every") or scenario.locate("record") or scenario.name
    asked, kept = format_time(series.asked_ps), format_time(series.every_ps)
    return [f"{place}: queues and rates are kept every {kept}, not {asked}: the run is too long for that"]


def _check_network(scenario: Scenario, network: NetworkSimulator) -> None:
    there = network.describe()
    for what, asked, can, who in (
        ("queues", scenario.record.queues, there.queues, "congestion does"),
        ("rates", scenario.record.rates, there.rates, "fair_share and congestion do"),
    ):
        if asked and not can:
            raise ScenarioError(
                f"{there.name} keeps no {what} over time; {who}",
                location=scenario.locate("record", what),
            )


def _pairs(scenario: Scenario, topology: Topology, jobs: list[str]) -> I64:
    """Endpoints that send and receive, of what is asked for and no job's name: int64[k, 2]."""
    from cosim.engine.series import MOST_SERIES

    names = topology.node_names[: topology.num_endpoints]
    pairs: dict[tuple[int, int], None] = {}
    place = scenario.locate("record", "rates")
    for asked in scenario.record.rates:
        ends = [end.strip() for end in asked.split("->")]
        if len(ends) != 2:
            if not any(fnmatchcase(job, asked) for job in jobs):
                raise ScenarioError(
                    f"{asked!r} is no job{nearest(asked, jobs)}",
                    location=place,
                    hint=f"jobs are {', '.join(jobs[:8])}; what endpoints send is {names[0]} -> *",
                )
            continue
        found = [[k for k, name in enumerate(names) if fnmatchcase(name, end)] for end in ends]
        for end, some in zip(ends, found, strict=True):
            if not some:
                raise ScenarioError(
                    f"{topology.name} has no endpoint {end!r}{nearest(end, names)}",
                    location=place,
                    hint=f"endpoints are {', '.join(names[:4])} ...",
                )
        if len(found[0]) * len(found[1]) > 4 * MOST_SERIES:
            raise ScenarioError(
                f"{asked!r} is {len(found[0]) * len(found[1]):,} pairs of endpoints",
                location=place,
                hint="name fewer endpoints, or a job by its name, whose rates are summed",
            )
        pairs |= dict.fromkeys((src, dst) for src in found[0] for dst in found[1] if src != dst)
    return np.array([*pairs], np.int64).reshape(-1, 2)
