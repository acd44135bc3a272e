"""What a format is given: the scenario as the engine would get it, and a run of it on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cosim.engine.programs import ReadyJob, ready_job
from cosim.engine.records import JobInfo, Records
from cosim.memory.contract import MemorySpec
from cosim.network.contract import NetworkSpec
from cosim.pattern.planner import Planner
from cosim.topology.graph import Topology


@dataclass(frozen=True, eq=False)
class Source:
    """A scenario to translate.

    Attributes
    ----------
    name
        The scenario's.
    topology, jobs, planner
        As :func:`cosim.engine.replay.replay` takes them: rank r of a job sits on ``endpoints[r]``.
    network_spec
        What the scenario names, for formats that take a network along; None for objects made in Python.
    memory
        What times the accesses of jobs to remote memory; None where there are none.
    make_run
        Runs the scenario on its network, messages recorded.
    """

    name: str
    topology: Topology
    jobs: tuple[JobInfo, ...]
    planner: Planner
    make_run: Callable[[], Records]
    network_spec: NetworkSpec | None = None
    memory: MemorySpec | None = None
    seed: int = 0
    info: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def ready(self) -> tuple[ReadyJob, ...]:
        """The jobs with groups and successors, as the engine makes them.

        Raises
        ------
        WorkloadError
            A job that doesn't fit the topology.
        """
        return tuple(ready_job(number, job, self.topology) for number, job in enumerate(self.jobs))

    @cached_property
    def run(self) -> Records:
        """A run on the scenario's own network, messages recorded; made when first asked for."""
        return self.make_run()
