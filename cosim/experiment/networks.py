"""The same question to several networks: ``cosim run S --network A,B --vary jobs[0].iterations=1,2``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from cosim.errors import InputError
from cosim.experiment.run import Run, simulate
from cosim.experiment.scenario import Scenario
from cosim.files.located_yaml import parse_value
from cosim.results.side_by_side import Answer, SideBySide


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


def ask_all(
    scenario: Scenario, networks: str, vary: Iterable[str] = (), say: Callable[[str], None] | None = None
) -> SideBySide:
    """Run every design on every network.

    Parameters
    ----------
    scenario
        The question. A network that it names itself keeps the settings that it gives.
    networks
        Names or mappings, separated by commas; the last is what the others are held against.
    vary
        ``PATH=V1,V2``: designs are all combinations.
    say
        Told what is run.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.experiment.run.run`.
    """
    names = split(networks)
    if len(set(names)) < len(names):
        raise InputError(f"--network {networks} names a network twice")
    answers = []
    for design in _designs(vary):
        for name in names:
            label = ", ".join(design) or scenario.name
            if say is not None:
                say(f"{label} on {name}")
            done = _run(scenario.with_settings(list(design)), name)
            if done.records.interrupted:
                raise InputError(f"interrupted: {done.records.interrupted}")
            answers.append(Answer(label, name, done.summary))
    return SideBySide(tuple(names), tuple(answers))


def _designs(vary: Iterable[str]) -> Iterator[tuple[str, ...]]:
    choices = []
    for text in vary:
        path, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"--vary {text}: there is no '='", hint="as in --vary jobs[0].iterations=1,2,4")
        choices.append([f"{path}={value}" for value in split(values)])
    return itertools.product(*choices)


def _run(scenario: Scenario, name: str) -> Run:
    from cosim.experiment.build import build

    network = parse_value(name)
    if name != scenario.network.name:  # else: the scenario's own settings of that network
        scenario = scenario.with_settings({"network": network})
    return simulate(scenario, build(scenario))
