"""The same scenario on several networks: ``cosim run S --network A,B --vary jobs[0].iterations=1,2``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field

from cosim.errors import InputError
from cosim.experiment.scenario import Scenario
from cosim.experiment.studies.contract import Study, StudyRounds, StudyRun
from cosim.files.located_yaml import parse_value
from cosim.results.networks import DesignResult, NetworkComparison


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


class NetworksStudy(Study):
    """The same designs on each of several networks: times, errors against the last, order of the designs"""

    networks: str | tuple[str | dict[str, Any], ...] = Field(
        description="fair_share,ns3; or a list of names and mappings. A network that the scenario names "
        "keeps the settings that it gives"
    )
    vary: str | tuple[str, ...] | dict[str, tuple[Any, ...]] = Field(
        (), description="settings and their values, jobs[0].iterations=1,2: designs are all combinations"
    )

    def ask(self, scenario: Scenario) -> StudyRounds:
        """Ask for every design on every network."""
        given = split(self.networks) if isinstance(self.networks, str) else self.networks
        asked = [_labelled(one) for one in given]
        names = [name for name, _ in asked]
        if not names or len({*names}) < len(names):
            raise InputError(f"networks {', '.join(names)}: name each network once, and at least one")
        vary = (self.vary,) if isinstance(self.vary, str) else self.vary
        designs = [(label or scenario.name, design) for label, design in _designs(scenario, vary)]
        runs = [
            StudyRun(f"{label} on {name}", here)
            for label, design in designs
            for name, network in asked
            for here in [
                design if name == design.network.name else design.with_settings({"network": network})
            ]
        ]
        summaries = yield runs
        whole = []
        for number, (label, _) in enumerate(designs):
            here = summaries[number * len(names) : (number + 1) * len(names)]
            if None not in here:
                whole += [DesignResult(label, *one) for one in zip(names, here, strict=True)]
        if not whole:
            raise KeyboardInterrupt
        return NetworkComparison(tuple(names), tuple(whole), "KeyboardInterrupt" if None in summaries else "")


def _labelled(network: str | Mapping[str, Any]) -> tuple[str, Any]:
    """What a network is called in tables, and the scenario's value for it."""
    if isinstance(network, str):
        return network, parse_value(network)
    return f"{{{', '.join(f'{key}: {value}' for key, value in network.items())}}}", dict(network)


def _designs(
    scenario: Scenario, vary: Mapping[str, Iterable[Any]] | Iterable[str]
) -> Iterator[tuple[str, Scenario]]:
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
