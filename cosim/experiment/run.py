"""Run a scenario: the path that ``cosim run``, Python users and the validation scripts all take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosim.errors import AlgorithmError, WorkloadError
from cosim.experiment.resume import finished, keep_log
from cosim.experiment.save import prepare
from cosim.experiment.scenario import Scenario, load

if TYPE_CHECKING:
    from cosim.engine.records import Records
    from cosim.engine.replay import ProgressInfo
    from cosim.experiment.build import Built
    from cosim.results.matrices import TrafficMatrix
    from cosim.results.summary import Summary


@dataclass(frozen=True, eq=False)
class Run:
    """A scenario and what came of it. ``warnings`` are settings that could not affect the result."""

    scenario: Scenario
    records: Records
    warnings: tuple[str, ...] = ()

    @cached_property
    def summary(self) -> Summary:
        """Iteration times, exposed communication, busy links ... in one object."""
        from cosim.results.summary import summarize

        return summarize(self.records, name=self.scenario.name, warnings=self.warnings)

    @property
    def digest(self) -> str:
        """A hex string over every completion and every operation's start and end."""
        return self.records.digest

    def traffic_matrix(self, job: int = 0, *, over_time: bool = True) -> TrafficMatrix:
        """Bytes from rank to rank of a job, over time; more in :mod:`cosim.results.matrices`."""
        from cosim.results.matrices import traffic_matrix

        return traffic_matrix(self.records.traffic, self.records.jobs[job], over_time=over_time)

    def save(self, directory: str | Path) -> Path:
        """Write summary, columns, timeline, the scenario as resolved, and the messages if recorded.

        Raises
        ------
        InputError
            The folder can't be written.
        """
        from cosim.experiment.save import save_run

        return save_run(self, directory)

    def __str__(self) -> str:
        from cosim.results.terminal import render

        return render(self.summary)


def run(
    scenario: Scenario | str | Path,
    set: Mapping[str, Any] | Iterable[str] = (),  # noqa: A002
    out: str | Path | None = None,
    *,
    progress: Callable[[ProgressInfo], None] | None = None,
) -> Run:
    """Run a scenario, given as a file or as an object.

    Parameters
    ----------
    scenario
        A YAML file, or a :class:`~cosim.experiment.scenario.Scenario`.
    set
        Changes, as in ``{"jobs[0].iterations": 5}``.
    out
        A folder to write the results to.
    progress
        Called now and then with the engine's progress.

    Raises
    ------
    InputError
        A mistake in the scenario, with its place.
    SimulationError
        The run can't go on; says who waits for whom.
    """
    if not isinstance(scenario, Scenario):
        scenario = load(scenario, set)
    elif set:
        scenario = scenario.with_settings(set)
    from cosim.experiment.build import build

    built = build(scenario)
    if out is not None:
        prepare(out, scenario)
        keep_log(built.network, scenario, out)
    done = simulate(scenario, built, progress=progress)
    if out is not None:
        done.save(out)
        if not done.records.interrupted:
            finished(out)
    return done


def simulate(
    scenario: Scenario,
    built: Built,
    *,
    progress: Callable[[ProgressInfo], None] | None = None,
    record_messages: bool = False,
) -> Run:
    """Replay what was built. An interrupt (Ctrl-C) gives the part that was computed.

    ``record_messages`` keeps every message in memory, where the scenario doesn't write them down.
    """
    from cosim.engine.replay import replay
    from cosim.experiment.build import at

    with (
        at(scenario.locate("jobs"), WorkloadError),
        at(scenario.locate("collectives"), AlgorithmError),
        closing(built.network),
    ):
        records = replay(
            built.topology,
            built.network,
            built.jobs,
            built.planner,
            release=scenario.release,
            seed=scenario.seed,
            record_messages=record_messages or scenario.record.messages is not False,
            progress=progress,
        )
    return Run(scenario, records, built.warnings)
