"""``cosim.study``: a study's runs, from the store where they are there, and else on the executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosim.errors import SimulationError
from cosim.experiment.executors.contract import Executor, read_executor
from cosim.experiment.mistakes import find_named
from cosim.experiment.progress import OnProgress, RunProgress
from cosim.experiment.run import read_scenario
from cosim.experiment.settings import Changes
from cosim.experiment.simulate import Run
from cosim.experiment.sizes import allowing_large, is_large_allowed
from cosim.experiment.store.trials import InterruptedRunError, Task, read_of_run
from cosim.experiment.studies.contract import Study, StudyRun
from cosim.experiment.trials import TaskRunner
from cosim.plugin_file import plugin_errors

if TYPE_CHECKING:
    from cosim.experiment.run import ScenarioSource


@plugin_errors()
def study(
    study: Study | Mapping[str, Any] | str,
    source: ScenarioSource | Run,
    set: Changes = (),  # noqa: A002
    *,
    store: str | Path | None = None,
    again: bool = False,
    executor: Executor | Mapping[str, Any] | str | None = None,
    workers: int | None = None,
    allow_large: bool = False,
    progress: OnProgress | None = None,
) -> Any:
    """Do what takes several runs of one scenario.

    Parameters
    ----------
    study
        Of `cosim list study`: ``"alone"``, or with its settings: ``{"kind": "networks", "networks":
        "fair_share,congestion"}``.
    source
        A scenario, as for :func:`cosim.run`; or a :class:`Run`, which is not run again.
    set
        Changes of the scenario.
    store, again
        Where runs are kept, and taken from where they are there; ``again``: run also those.
    executor, workers
        Where runs are run, of `cosim list executor`; or how many processes, 1 if not given.
    allow_large
        Run also what would take more than this machine's memory, or hours, by an estimate.
    progress
        Called before each run with ``done``, ``total`` and ``text``.

    Returns
    -------
    StudyResult
        What was found: it prints as a page; ``to_json()`` gives plain values.

    Raises
    ------
    InputError
        A mistake in the scenario or in the study's settings.
    SimulationError
        A run can't go on.

    Examples
    --------
    >>> import cosim
    >>> found = cosim.study({"kind": "networks", "networks": "congestion_unaware,fair_share"}, '''
    ... topology: {kind: switch, endpoints: 4, rate: 80Gbps, latency: 1us}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''')
    >>> found.networks
    ('congestion_unaware', 'fair_share')
    """
    run = source if isinstance(source, Run) else None
    scenario = read_scenario(source if run is None else run.scenario, set)  # type: ignore[arg-type]
    chosen: Study = find_named("cosim.studies", Study, study)
    runner = TaskRunner(store, read_executor(executor), workers, again=again)
    rounds = _StudyAnswers(run, runner, progress)
    with allowing_large(allow_large):
        asking = chosen.ask(scenario)
        try:
            wanted = next(asking)
            while True:
                wanted = asking.send(rounds.answers(wanted))
        except StopIteration as ended:
            return ended.value


class _StudyAnswers:
    """Answers what a study asks for, round by round, until an interrupt."""

    def __init__(self, run: Run | None, runner: TaskRunner, progress: OnProgress | None) -> None:
        self._run, self._runner, self._progress = run, runner, progress
        self._interrupted = False

    def answers(self, wanted: Sequence[StudyRun]) -> list[Any]:
        """What each gave; None where an interrupt left it out. A second round after it raises it."""
        if self._interrupted:
            raise KeyboardInterrupt
        tasks = [
            Task(
                *(one.scenario, (one.label,), one.scenario.seed, (), is_large_allowed()),
                *(self._runner.store, self._runner.again),
                summarized=True,
                job=one.job,
                read=one.read,
                arguments=one.arguments,
            )
            for one in wanted
        ]
        stored = {number: answer.given for number, answer in self._runner.stored(tasks).items()}
        known = {number: self._known(one) for number, one in enumerate(wanted)}
        found = {n: given for n, given in (*stored.items(), *known.items()) if given is not None}
        left = [number for number in range(len(tasks)) if number not in found]
        try:
            with closing(self._runner.run(tasks, left)) as ran:
                self._tell_next(wanted, found)
                for number, answer in ran:
                    if answer.trial.error:
                        raise SimulationError(f"{wanted[number].label}: {answer.trial.error}")
                    found[number] = answer.given
                    self._tell_next(wanted, found)
        except (KeyboardInterrupt, InterruptedRunError):
            self._interrupted = True
        return [found.get(number) for number in range(len(wanted))]

    def _known(self, one: StudyRun) -> Any:
        """The answer of the run that the study was given; None: a run has to be made."""
        run = self._run
        if run is None or one.job is not None or one.scenario is not run.scenario:
            return None
        if one.read is None:
            return run.summary
        return None if run.records.messages is None else read_of_run(run, one.read, one.arguments)

    def _tell_next(self, wanted: Sequence[StudyRun], found: Mapping[int, Any]) -> None:
        """Say how many runs are there, and which is next."""
        if self._progress is not None:
            label = next((one.label for number, one in enumerate(wanted) if number not in found), "")
            if label:
                self._progress(RunProgress(len(found), len(wanted), label))
