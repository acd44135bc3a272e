"""The same scenario on several networks: ``cosim run S --network A,B --vary jobs[0].iterations=1,2``."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from cosim.errors import InputError, SimulationError
from cosim.experiment.executors.contract import Executor
from cosim.experiment.progress import OnProgress, RunProgress
from cosim.experiment.scenario import Scenario
from cosim.experiment.sizes import is_large_allowed
from cosim.experiment.store.runs import Keeper, open_store
from cosim.experiment.store.trials import InterruptedRunError, Task, stored_answers
from cosim.experiment.trials import executor_of, run_tasks
from cosim.files.located_yaml import parse_value
from cosim.results.networks import DesignResult, NetworkComparison
from cosim.results.summary import Summary

Networks = str | Iterable[str | Mapping[str, Any]]
"""``"fair_share,ns3"``, or ``["fair_share", {"model": "congestion", "control": "dctcp"}]``."""
Vary = Mapping[str, Iterable[Any]] | Iterable[str]
"""``{"jobs[0].iterations": [1, 2]}``, or texts ``["jobs[0].iterations=1,2"]``."""

_log = logging.getLogger("cosim")


def split(text: str) -> list[str]:
    """``"a,{b: 1, c: 2}"`` at its outer commas.

    Raises
    ------
    InputError
        Nothing between two commas.
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    parts = [part.strip() for part in parts]
    if not all(parts):
        raise InputError(f"{text!r} has an empty entry between its commas")
    return parts


def run_networks(
    scenario: Scenario,
    networks: Networks,
    vary: Vary = (),
    *,
    store: str | Path | None = None,
    again: bool = False,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: OnProgress | None = None,
) -> NetworkComparison:
    """Run every design on every network.

    Parameters
    ----------
    scenario
        The question. A network that it names itself keeps the settings that it gives.
    networks
        The last is what the others are held against.
    vary
        Settings and their values: designs are all combinations.
    store, again, executor, workers
        As for a sweep (:func:`~cosim.experiment.trials.run_sweep`).
    progress
        Called before each run.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.run`.
    """
    asked = [_labelled(one) for one in (split(networks) if isinstance(networks, str) else networks)]
    names = [name for name, _ in asked]
    if not names or len({*names}) < len(names):
        raise InputError(f"networks {', '.join(names)}: name each network once, and at least one")
    runs = None if store is None else open_store(store)
    tasks = [
        Task(
            here,
            (label or scenario.name, name),
            here.seed,
            (),
            is_large_allowed(),
            runs,
            again,
            summarized=True,
        )
        for label, design in _designs(scenario, vary)
        for name, network in asked
        for here in [design if name == design.network.name else design.with_settings({"network": network})]
    ]
    answers = {} if runs is None or again else stored_answers(runs, tasks)
    found = {number: answer.summary for number, answer in answers.items() if answer.summary is not None}
    left = [number for number in range(len(tasks)) if number not in found]
    interrupted = ""
    try:
        with closing(run_tasks(executor_of(executor, workers), tasks, left, Keeper(runs))) as ran:
            _tell_next(tasks, found, progress)
            for number, answer in ran:
                if answer.summary is None:
                    raise SimulationError(f"{' on '.join(tasks[number].labels)}: {answer.trial.error}")
                found[number] = answer.summary
                _tell_next(tasks, found, progress)
    except (KeyboardInterrupt, InterruptedRunError):
        interrupted = KeyboardInterrupt.__name__
    whole = tuple(
        DesignResult(tasks[number].labels[0], tasks[number].labels[1], found[number])
        for first in range(0, len(tasks), len(names))
        if {*range(first, first + len(names))} <= found.keys()
        for number in range(first, first + len(names))
    )
    if not whole:
        raise KeyboardInterrupt
    return NetworkComparison(tuple(names), whole, interrupted)


def _tell_next(tasks: Sequence[Task], found: Mapping[int, Summary], progress: OnProgress | None) -> None:
    """Say how many runs are there, and which is next."""
    for number, task in enumerate(tasks):
        if number not in found:
            text = " on ".join(task.labels)
            _log.info(text)
            if progress is not None:
                progress(RunProgress(len(found), len(tasks), text))
            return


def _labelled(network: str | Mapping[str, Any]) -> tuple[str, Any]:
    """What a network is called in tables, and the scenario's value for it."""
    if isinstance(network, str):
        return network, parse_value(network)
    return f"{{{', '.join(f'{key}: {value}' for key, value in network.items())}}}", dict(network)


def _designs(scenario: Scenario, vary: Vary) -> Iterator[tuple[str, Scenario]]:
    """The scenario with each combination of values, and what it is called."""
    axes = []
    for entry in vary.items() if isinstance(vary, Mapping) else vary:
        path, values = _parsed(entry) if isinstance(entry, str) else entry
        axes.append([(f"{path}={value}", path, value) for value in values])
    for chosen in itertools.product(*axes):
        changes = {path: parse_value(value) if isinstance(value, str) else value for _, path, value in chosen}
        yield ", ".join(label for label, _, _ in chosen), scenario.with_settings(changes)


def _parsed(text: str) -> tuple[str, list[str]]:
    path, equals, values = text.partition("=")
    if not equals:
        raise InputError(f"vary {text}: there is no '='", hint="as in jobs[0].iterations=1,2,4")
    return path, split(values)
