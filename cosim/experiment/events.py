"""Events of a scenario, on what they are of: a topology's links, and ranks of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cosim.cluster.pace import JobPace
from cosim.engine.records import JobInfo
from cosim.errors import ScenarioError
from cosim.experiment.scenario import Scenario
from cosim.fabric.changes import LinkChanges
from cosim.faults.event import Event
from cosim.faults.training import Lifetime, live
from cosim.network.simulator import NetworkSimulator
from cosim.plugin_file import at
from cosim.registry import nearest
from cosim.topology.graph import Topology
from cosim.units import format_time


def with_changes(scenario: Scenario, topology: Topology) -> Topology:
    """The topology with links that change as the scenario's events say.

    Raises
    ------
    TopologyError
        An event of what is not there; names a near one.
    """
    events = [(number, event) for number, event in enumerate(scenario.events) if event.rank is None]
    if not events:
        return topology
    from cosim.faults.links import EventsOfLinks, parts_of

    found = []
    for number, event in events:
        with at(scenario.locate("events", number, "node" if event.node else "link")):
            found.append((number, event, parts_of(event, topology)))
    changes = EventsOfLinks(topology, found, scenario.seed)
    return replace(topology, changes=LinkChanges(changes, scenario.detection))


def check_can_change(scenario: Scenario, topology: Topology, network: NetworkSimulator) -> None:
    """Refuse events of links for a network of this process that has none.

    Raises
    ------
    ScenarioError
        Names the network.
    """
    if topology.changes is None or network.elsewhere or network.describe().link_changes:
        return
    number = next(n for n, event in enumerate(scenario.events) if event.rank is None)
    raise ScenarioError(
        f"{network.describe().name} has no links that fail or slow down",
        location=scenario.locate("events", number),
        hint="those of this process have; so has ns-3",
    )


def never_back(scenario: Scenario) -> list[str]:
    """What fails for good, and when, for people."""
    return [
        f"the {_said(event)} fails at {format_time(event.at)} and never comes back"
        for event in scenario.events
        if event.down and event.until is None and event.mtbf is None
    ]


def too_late(scenario: Scenario, end_ps: int) -> list[str]:
    """Events for which a run was over too soon, with their places."""
    shown = []
    for number, event in enumerate(scenario.events):
        if event.at >= end_ps and event.mtbf is None and not event.fails:
            place = scenario.locate("events", number) or f"{scenario.name}: events[{number}]"
            what = f"the run ends at {format_time(end_ps)}, before {format_time(event.at)}"
            shown.append(f"{place}: has no effect: {what}")
    return shown


def _said(event: Event) -> str:
    return f"node {event.node}" if event.node else f"link {event.link}"


_Found = dict[int, list[tuple[int, Event, list[int]]]]
"""By job number: events by theirs, and the ranks that they happen to."""


def events_of_ranks(scenario: Scenario, jobs: Sequence[JobInfo]) -> _Found:
    """Whose ranks the scenario's events are of.

    Raises
    ------
    ScenarioError, WorkloadError
        An event of a job or a rank that is not there.
    """
    found: _Found = {}
    names = [job.name for job in jobs]
    for number, event in enumerate(scenario.events):
        if event.rank is None:
            continue
        with at(scenario.locate("events", number, "job" if event.job else "rank")):
            if not event.job and len(jobs) > 1:
                raise ScenarioError(f"which job's rank? There are {', '.join(names)}: add job: {names[0]}")
            if event.job and event.job not in names:
                raise ScenarioError(f"there is no job {event.job!r}{nearest(event.job, names)}")
            which = names.index(event.job) if event.job else 0
        from cosim.faults.ranks import ranks_of

        with at(scenario.locate("events", number, "rank")):
            ranks = ranks_of(event, jobs[which].workload.world_size)
        found.setdefault(which, []).append((number, event, ranks))
    return found


def with_slowdowns(scenario: Scenario, jobs: Sequence[JobInfo]) -> tuple[JobInfo, ...]:
    """The jobs with ranks that compute slower as the scenario's events say.

    Raises
    ------
    ScenarioError, WorkloadError
        As :func:`events_of_ranks`.
    """
    made = list(jobs)
    for which, events in events_of_ranks(scenario, jobs).items():
        slow = [one for one in events if one[1].slow is not None]
        if slow:
            from cosim.faults.ranks import EventsOfRanks

            slowdowns = EventsOfRanks(slow, scenario.seed)
            made[which] = replace(
                jobs[which], pace=jobs[which].pace or JobPace(0, 0, ()), slowdowns=slowdowns
            )
    return tuple(made)


def lifetimes(
    scenario: Scenario, jobs: Sequence[JobInfo], iterations: Sequence[int | None]
) -> dict[str, Lifetime]:
    """What becomes of each job's training, by its name, from the mean time of its iterations in ps."""
    events = events_of_ranks(scenario, jobs)
    asked = [job.training for job in scenario.jobs for _ in job.names()]
    found = {}
    for number, (job, training, iteration) in enumerate(zip(jobs, asked, iterations, strict=True)):
        if training is not None and iteration:
            from cosim.faults.failures import Failures

            fails = [one for one in events.get(number, []) if one[1].fails]
            failures = Failures(fails, scenario.seed, training.lasts)
            found[job.name] = live(training, iteration, failures, failures.mtbf_ps())
    return found
