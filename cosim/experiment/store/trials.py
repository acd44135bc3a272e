"""Trials of a sweep, found in a store and kept in one."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from cosim.doubts import in_a_line
from cosim.errors import CosimError, InfeasibleError, InputError, RemoteError
from cosim.experiment.alone import run_alone, run_job
from cosim.experiment.build import build
from cosim.experiment.save import run_files, write_run
from cosim.experiment.scenario import Scenario
from cosim.experiment.simulate import Run, simulate
from cosim.experiment.sizes import allowing_large
from cosim.experiment.store.claims import claim
from cosim.experiment.store.question import Question, question_of
from cosim.experiment.store.runs import NewRun, RunStore, kept
from cosim.experiment.workloads import KEPT
from cosim.files.folder import claimed, own
from cosim.files.reads import reading
from cosim.results.measures import MEASURES
from cosim.results.store import SUMMARY_FILE
from cosim.results.summary import Summary
from cosim.results.sweep import RUN_REPORT, Trial

_log = logging.getLogger("cosim")
_READ_FILE = "read.json"


class InterruptedRunError(Exception):
    """A run was interrupted: its part of a result is no result."""


@dataclass(frozen=True)
class Task:
    """One trial to be run. ``store`` is where others look for it; ``again``: run it although it is there;
    ``folder``: where the whole run is written, with its report. ``summarized``: its summary is wanted, and
    that it can't go on is raised. ``job``, ``read``, ``arguments``: as of a
    :class:`~cosim.experiment.studies.contract.StudyRun`.
    """

    scenario: Scenario
    labels: tuple[str, ...]
    seed: int
    measures: tuple[str, ...]
    allow_large: bool
    store: RunStore | None = None
    again: bool = False
    folder: Path | None = None
    summarized: bool = False
    job: int | None = None
    read: Callable[..., Any] | None = None
    arguments: tuple[Any, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """Files that a stored run needs to answer it."""
        return (*([SUMMARY_FILE] if self.summarized else []), *([_READ_FILE] if self.read else []))

    @property
    def with_alone(self) -> bool:
        """Whether a measure needs the jobs by themselves, too."""
        return any(MEASURES[name].needs_alone for name in self.measures)


@dataclass(frozen=True)
class TrialAnswer:
    """What came of a task, and what is still to be kept of it: where the store was not seen."""

    trial: Trial
    kept: NewRun | None = None
    given: Any = None
    """The summary that was wanted, or what was read of the run."""


def run_task(task: Task) -> TrialAnswer:
    """Run a trial; keep it, where the store is seen from here.

    Raises
    ------
    InputError
        A mistake in its scenario.
    InterruptedRunError
        It was interrupted.
    """
    store = task.store
    question = None if store is None else _question(task)
    if store is None or question is None:
        return _simulated(task).answer(task)
    here = store.is_here()
    with claim(store.address, question) if here else nullcontext():
        if here and not task.again and (trial := _stored(store, question, task)) is not None:
            return trial  # another client's, since it was looked for
        return _run_and_keep(task, store, question, here=here)


def _run_and_keep(task: Task, store: RunStore, question: Question, *, here: bool) -> TrialAnswer:
    began = time.time()
    with reading() as read:
        made = _simulated(task)
    if read.unclear:
        _say_once(f"{read.who} {read.unclear}")
    # Of a file that changed meanwhile nobody knows which state was read: such a run answers no question.
    elif made.is_lasting and not read.changed_since(began):
        files, seconds = read.states(question.base), time.time() - began
        name = task.scenario.name
        run = kept(
            question, name, made.summary, files, seconds, made.alone, made.error, read=made.files(task)
        )
        answer = made.answer(task)
        if here and _keep(store, run):
            return replace(answer, trial=replace(answer.trial, run=run.entry.id))
        return replace(answer, kept=run)
    return made.answer(task)


def stored_answers(store: RunStore, tasks: Sequence[Task]) -> dict[int, TrialAnswer]:
    """Those that the store has, by their number among the tasks."""
    # Names once for all tasks: a listing for each would be a thousand readings of the same folders.
    listing, found = store.listing(), {}
    for number, task in enumerate(tasks):
        question = _question(task) if listing else None
        answer = None if question is None else _stored(store, question, task, listing)
        if answer is not None:
            found[number] = answer
    return found


@dataclass(frozen=True)
class _Made:
    """What came of a simulation; ``is_lasting``: it would come again."""

    summary: Summary | None
    alone: Mapping[str, float] | None = None
    error: str = ""
    is_lasting: bool = True
    read: Any = None

    def files(self, task: Task) -> dict[str, bytes]:
        """What was read of it, as a store keeps it."""
        return {} if task.read is None else {_READ_FILE: json.dumps(self.read).encode()}

    def trial(self, task: Task) -> Trial:
        if self.summary is None:
            return Trial(task.labels, task.seed, {}, "", self.error)
        measures = {name: MEASURES[name].of(self.summary, self.alone or {}) for name in task.measures}
        doubtful = in_a_line(self.summary.doubts)
        return Trial(task.labels, task.seed, measures, self.summary.digest, doubtful=doubtful)

    def answer(self, task: Task) -> TrialAnswer:
        given = self.read if task.read is not None else self.summary if task.summarized else None
        return TrialAnswer(self.trial(task), given=given)


def _simulated(task: Task) -> _Made:
    try:
        with allowing_large(task.allow_large):
            done = _run(task)
        if done.interrupted:
            raise InterruptedRunError
        read = None if task.read is None else read_of_run(done, task.read, task.arguments)
        if task.folder is not None:
            _write(done, task.folder)
        alone = run_alone(task.scenario) if task.with_alone else None
        made = _Made(done.summary, alone, read=read)
        made.trial(task)
    except CosimError as error:
        if task.summarized:
            raise
        return _failed(task, error)
    return made


def _run(task: Task) -> Run:
    if task.job is not None:
        return run_job(task.scenario, task.job)
    return simulate(task.scenario, build(task.scenario, KEPT), messages=task.read is not None)


def read_of_run(run: Run, read: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a study's function reads of a run, as plain values: the same as from a store."""
    return json.loads(json.dumps(read(run, *arguments)))


def _failed(task: Task, error: CosimError) -> _Made:
    if isinstance(error, InfeasibleError):  # without its place: the next to ask may have it in another file
        return _Made(None, None, f"{InfeasibleError.__name__}: {error.message}")
    if isinstance(error, InputError):
        raise InputError(f"{' / '.join(task.labels)}, seed {task.seed}: {error}") from error
    lasting = not isinstance(error, RemoteError)  # what is elsewhere may answer another time
    return _Made(None, None, f"{type(error).__name__}: {error}", lasting)


def _write(run: Run, folder: Path) -> None:
    with claimed(folder, [*run_files(), RUN_REPORT]) as target:
        write_run(run, target)
        own(target, [RUN_REPORT])
        run.report().save(target / RUN_REPORT)


def _question(task: Task) -> Question | None:
    try:
        question = question_of(task.scenario)
        if task.job is None and task.read is None:
            return question
        return question.narrowed(task.job, task.read, task.arguments)
    except CosimError as error:
        _say_once(str(error))
        return None


@cache
def _say_once(text: str) -> None:
    _log.warning("not in the store: %s", text)


def _stored(
    store: RunStore, question: Question, task: Task, listing: Mapping[str, list[str]] | None = None
) -> TrialAnswer | None:
    """The trial, where the store has all that is wanted of it."""
    entry = store.find(question, parts=task.parts, listing=listing)
    if entry is None or (task.with_alone and not entry.error and entry.alone is None):
        return None
    if entry.error:
        return TrialAnswer(Trial(task.labels, task.seed, {}, "", entry.error, entry.id))
    if all(name in entry.measures for name in task.measures):
        measures = {name: entry.measures[name] for name in task.measures}
        trial = Trial(task.labels, task.seed, measures, entry.digest, "", entry.id, entry.doubtful)
        try:
            if task.read is not None:
                return TrialAnswer(trial, given=json.loads(store.part(entry, _READ_FILE)))
            return TrialAnswer(trial, given=store.summary(entry) if task.summarized else None)
        except InputError as error:
            _log.warning("%s; it is run again", error)
    return None  # a network that reports none of it: running it says so


def _keep(store: RunStore, run: NewRun) -> bool:
    try:
        store.keep(run)
    except OSError:  # the client tries, too, and says why not
        return False
    return True
