"""A sweep: one scenario, run for every combination of choices on named axes, and for several seeds.

::

    name: shoot-out
    scenario: base.yaml                       # or a scenario written here
    axes:
      control:                                # the first axis is compared in each column of the table
        dctcp: {network.control: dctcp}       # a label, and the settings that it stands for
        swift: {network.control: swift}
      jobs:
        jobs.0.count: [2, 4, 8]                # short: a setting and its values
    seeds: 5
    measures: [iteration, fairness]

`cosim run FILE` tells a sweep from a scenario by its axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from cosim.errors import InputError, ScenarioError
from cosim.experiment import located_yaml, settings
from cosim.experiment.mistakes import scenario_error
from cosim.experiment.run import simulate
from cosim.experiment.scenario import Scenario, from_document
from cosim.registry import nearest
from cosim.results.measures import MEASURES
from cosim.results.trials import Trial, Trials
from cosim.spec import Spec

Choices = dict[str, dict[str, Any]]
"""Label to settings."""


class Sweep(Spec):
    """A scenario, axes of choices, seeds, and what is measured"""

    name: str = Field("", description="what reports call it; the file's name where it is left out")
    description: str = Field("", description="for people")
    scenario: str | dict[str, Any] = Field(description="a scenario file, or a scenario written here")
    axes: dict[str, dict[str, Any]] = Field(
        min_length=1, description="axis: {label: {setting: value}}, or axis: {setting: [values]}"
    )
    seeds: tuple[int, ...] = Field((0,), description="seeds of the scenario, or how many (0, 1, 2 ...)")
    measures: tuple[str, ...] = Field(("iteration",), min_length=1, description=f"of {', '.join(MEASURES)}")

    @field_validator("seeds", mode="before")
    @classmethod
    def _how_many(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            if value < 1:
                raise ValueError(f"{value} seeds; at least 1")
            return tuple(range(value))
        return value

    @field_validator("measures")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in MEASURES:
                raise ValueError(
                    f"there is no measure {name!r}{nearest(name, MEASURES)}\n"
                    f"  there are: {', '.join(MEASURES)}"
                )
        return value

    @field_validator("axes")
    @classmethod
    def _choices(cls, value: dict[str, dict[str, Any]]) -> dict[str, Choices]:
        return {axis: _labelled(axis, choices) for axis, choices in value.items()}


def _labelled(axis: str, choices: dict[str, Any]) -> Choices:
    """Labels and settings of an axis, the short form written out."""
    short = [key for key, one in choices.items() if isinstance(one, list)]
    if short:
        if len(choices) > 1:
            raise ValueError(f"axis {axis!r}: a setting with a list of values stands alone on its axis")
        path = short[0]
        return {_label(one): {path: one} for one in choices[path]}
    wrong = [label for label, one in choices.items() if not isinstance(one, dict)]
    if wrong or not choices:
        at = f" {wrong[0]!r}" if wrong else ""
        raise ValueError(
            f"axis {axis!r}: the label{at} needs settings, as in dctcp: {{network.control: dctcp}}"
        )
    return {str(label): dict(one) for label, one in choices.items()}


def _label(value: Any) -> str:
    if isinstance(value, Mapping):
        return next((str(value[key]) for key in ("kind", "model", "algorithm") if key in value), str(value))
    return str(value)


@dataclass(frozen=True, eq=False)
class LoadedSweep:
    """A sweep read from a file, with the scenario that it changes."""

    sweep: Sweep
    name: str
    base: Scenario

    @property
    def num_runs(self) -> int:
        """Combinations times seeds."""
        combinations = 1
        for choices in self.sweep.axes.values():
            combinations *= len(choices)
        return combinations * len(self.sweep.seeds)

    def combinations(self) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
        """Labels, one of each axis, and all settings that they stand for."""
        for chosen in itertools.product(*(choices.items() for choices in self.sweep.axes.values())):
            merged: dict[str, Any] = {}
            for _, changes in chosen:
                merged |= changes
            yield tuple(label for label, _ in chosen), merged


def is_sweep(document: located_yaml.Document) -> bool:
    """Whether a YAML file is a sweep."""
    return isinstance(document.value, dict) and "axes" in document.value


def load_sweep(path: Path, changes: Iterable[str] = ()) -> LoadedSweep:
    """Read a sweep; every combination's settings are tried on the scenario before any is run.

    Raises
    ------
    ScenarioError
        Each mistake, with its place.
    """
    document = located_yaml.read(path)
    settings.apply_texts(document, changes)
    try:
        sweep = Sweep.model_validate(document.value)
    except ValidationError as error:
        raise scenario_error(error, Sweep, document) from None
    name = sweep.name or path.stem
    if isinstance(sweep.scenario, str):
        place = path.parent / sweep.scenario
        base = from_document(located_yaml.read(place), place.parent, name)
    else:
        inner = located_yaml.Document(
            document.file,
            document.value["scenario"],
            {where[1:]: line for where, line in document.lines.items() if where[:1] == ("scenario",)},
            {where[1:]: text for where, text in document.settings.items() if where[:1] == ("scenario",)},
        )
        base = from_document(inner, path.parent, name)
    loaded = LoadedSweep(sweep, name, base)
    for labels, merged in loaded.combinations():
        try:
            base.with_settings(merged)
        except ScenarioError as error:
            where = document.locate(("axes",))
            raise ScenarioError(f"{' / '.join(labels)}: {error}", location=where) from error
    return loaded


def run_sweep(loaded: LoadedSweep, say: Callable[[str], None] | None = None) -> Trials:
    """Run every combination with every seed, one after another.

    Parameters
    ----------
    loaded
        The sweep.
    say
        Told of each run before it starts.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.experiment.run.run`.
    """
    from cosim.experiment.alone import alone
    from cosim.experiment.build import build

    sweep = loaded.sweep
    trials: list[Trial] = []
    with_alone = any(MEASURES[name].needs_alone for name in sweep.measures)
    for labels, merged in loaded.combinations():
        for seed in sweep.seeds:
            if say is not None:
                say(f"{len(trials) + 1} of {loaded.num_runs}: {' / '.join(labels)}, seed {seed}")
            scenario = loaded.base.with_settings({**merged, "seed": seed})
            done = simulate(scenario, build(scenario))
            if done.records.interrupted:
                raise InputError(f"interrupted: {done.records.interrupted}")
            by_itself = alone(scenario) if with_alone else {}
            measures = {name: MEASURES[name].of(done.summary, by_itself) for name in sweep.measures}
            trials.append(Trial(labels, seed, measures, done.digest))
    axes = tuple((axis, tuple(choices)) for axis, choices in sweep.axes.items())
    return Trials(loaded.name, axes, sweep.measures, tuple(trials))


def save_trials(trials: Trials, out: Path) -> list[Path]:
    """Write trials.csv (each run), figure.csv (what the figure shows), figure.png, figure.svg, table.txt.

    Raises
    ------
    InputError
        A file can't be written, or matplotlib is not installed (what needs none is written first).
    """
    from cosim.results.figure import draw_trials

    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in (
        ("table.txt", str(trials)),
        ("trials.csv", trials.trials_csv()),
        ("figure.csv", trials.figure_csv()),
    ):
        (out / name).write_text(text, encoding="utf-8")
        written.append(out / name)
    return [*written, draw_trials(trials, out / "figure.png"), draw_trials(trials, out / "figure.svg")]
