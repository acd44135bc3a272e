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
    only: {jobs: [2]}                         # a part of it: as good as --set only.jobs=[2]

`cosim run FILE` tells a sweep from a scenario by its axes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator, model_validator

from cosim.errors import ScenarioError
from cosim.experiment import settings
from cosim.experiment.mistakes import scenario_error
from cosim.experiment.scenario import Scenario, from_document
from cosim.files import located_yaml
from cosim.registry import nearest
from cosim.results.measures import MEASURES
from cosim.spec import Spec
from cosim.written import plain

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

    only: dict[str, tuple[str, ...]] = Field(
        {}, description="axis: [labels], to run a part of the sweep: --set only.control=[dctcp]"
    )

    @field_validator("only", mode="before")
    @classmethod
    def _as_labels(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {axis: [str(one) for one in (v if isinstance(v, list) else [v])] for axis, v in value.items()}

    @model_validator(mode="after")
    def _part(self) -> Sweep:
        for axis, labels in self.only.items():
            if axis not in self.axes:
                raise ValueError(
                    f"only: there is no axis {axis!r}{nearest(axis, self.axes)}\n"
                    f"  there are: {', '.join(self.axes)}"
                )
            for label in labels:
                if label not in self.axes[axis]:
                    raise ValueError(
                        f"only: axis {axis!r} has no {label!r}{nearest(label, self.axes[axis])}\n"
                        f"  it has: {', '.join(self.axes[axis])}"
                    )
            if not labels:
                raise ValueError(f"only: nothing is left of axis {axis!r}")
        return self

    def chosen(self) -> dict[str, Choices]:
        """The axes, with what ``only`` leaves of them."""
        return {
            axis: {label: one for label, one in choices.items() if label in self.only.get(axis, choices)}
            for axis, choices in self.axes.items()
        }

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
    """A sweep read from a file, with the scenario that it changes: complete only with an axis' settings."""

    sweep: Sweep
    name: str
    document: located_yaml.Document
    folder: Path

    def scenario(self, changes: Mapping[str, Any]) -> Scenario:
        """The scenario with changes.

        Raises
        ------
        ScenarioError
            It is none, or the changes don't fit it.
        """
        copy = located_yaml.Document(
            self.document.file,
            plain(self.document.value, keep=True),
            dict(self.document.lines),
            dict(self.document.settings),
        )
        return from_document(copy, self.folder, self.name, changes)

    @property
    def num_runs(self) -> int:
        """Combinations times seeds."""
        return math.prod(map(len, self.sweep.chosen().values())) * len(self.sweep.seeds)

    @property
    def axes(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Name and labels of each."""
        return tuple((axis, tuple(choices)) for axis, choices in self.sweep.chosen().items())

    def combinations(self) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
        """Labels, one of each axis, and all settings that they stand for."""
        for chosen in itertools.product(*(choices.items() for choices in self.sweep.chosen().values())):
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
        inner, folder = located_yaml.read(place), place.parent
    else:
        folder = path.parent
        inner = located_yaml.Document(
            document.file,
            document.value["scenario"],
            {where[1:]: line for where, line in document.lines.items() if where[:1] == ("scenario",)},
            {where[1:]: text for where, text in document.settings.items() if where[:1] == ("scenario",)},
        )
    loaded = LoadedSweep(sweep, name, inner, folder)
    for labels, merged in loaded.combinations():
        try:
            loaded.scenario(merged)
        except ScenarioError as error:
            where = document.locate(("axes",))
            raise ScenarioError(f"{' / '.join(labels)}: {error}", location=where) from error
    return loaded
