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
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from cosim.errors import InputError, ScenarioError
from cosim.experiment import settings
from cosim.experiment.cost import CostTable, read_cost
from cosim.experiment.executors.contract import Executor
from cosim.experiment.scenario import Scenario, from_document
from cosim.experiment.settings import Changes
from cosim.files import located_yaml
from cosim.files.trust import check_document
from cosim.registry import Named, folder_of, nearest
from cosim.results.measures import MEASURES
from cosim.results.quantities import QUANTITIES, check_quantity
from cosim.spec import Spec
from cosim.written import plain

_S = TypeVar("_S", bound="Sweep")
MOST_SEEDS = 1_000_000
Choices = dict[str, dict[str, Any]]
"""Label to settings."""
OF_A_DESIGN = (
    *("objective", "constraints", "fidelity"),
    *("optimizer", "tolerance", "runs", "at_once", "what_if"),
)
"""Keys that a sweep lacks and a design has."""


class Sweep(Spec):
    """A scenario, axes of choices, seeds, and what is measured

    :func:`cosim.sweep` runs it, and also makes it from a scenario and axes.

    Examples
    --------
    >>> import cosim
    >>> sweep = cosim.Sweep(
    ...     scenario={
    ...         "topology": {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"},
    ...         "network": "fair_share",
    ...         "jobs": [{"workload": {"kind": "collective", "collective": "all_reduce", "size": "4MB"}}],
    ...     },
    ...     axes={"rate": {"topology.rate": ["80Gbps", "40Gbps"]}},
    ... )
    >>> sweep.num_runs
    2
    >>> [labels for labels, settings in sweep.combinations()]
    [('80Gbps',), ('40Gbps',)]
    """

    name: str = Field("", description="what reports call it; the file's name where it is left out")
    description: str = Field(
        "", description="for people, on the report; omitted: the comment that the file begins with"
    )
    scenario: str | dict[str, Any] = Field(description="a scenario file, or a scenario written here")
    axes: dict[str, dict[str, Any]] = Field(
        min_length=1, description="axis: {label: {setting: value}}, or axis: {setting: [values]}"
    )
    seeds: tuple[int, ...] = Field((0,), description="seeds of the scenario, or how many (0, 1, 2 ...)")
    measures: tuple[str, ...] = Field(("iteration",), min_length=1, description=f"of {', '.join(QUANTITIES)}")
    cost: CostTable = Field(
        default_factory=lambda: CostTable.model_validate({}),
        description="what parts cost and draw, over the table that comes with cosim; or a file of that form",
    )

    baseline: str = Field(
        "", description="a choice of the first axis that the others are held against, seed by seed"
    )

    only: dict[str, tuple[str, ...]] = Field(
        {}, description="axis: [labels], to run a part of the sweep: --set only.control=[dctcp]"
    )

    keep_runs: bool = Field(
        False,
        description="with --out, every run is written, too, with its report, which the sweep's report opens",
    )

    store: str = Field(
        "", description="where runs are kept and taken from; a folder, from the sweep's own, or s3://..."
    )

    executor: Annotated[Executor | None, Named("cosim.executors")] = Field(
        None,
        description="where runs are run, of `cosim list executor`; omitted: local",
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
        first, labels = self.labels[0]
        if self.baseline and self.baseline not in labels:
            raise ValueError(
                f"baseline: axis {first!r} has no {self.baseline!r}{nearest(self.baseline, labels)}\n"
                f"  it has: {', '.join(labels)}"
            )
        return self

    @property
    def files(self) -> list[Path]:
        """The files that it was read from."""
        found = [] if self._document is None or not self._document.file else [Path(self._document.file)]
        if isinstance(self.scenario, str):
            found.append(self._base / self.scenario)
        return found

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
            if value > MOST_SEEDS:
                raise ValueError(f"{value} seeds are more than the {MOST_SEEDS} that are counted to")
            return tuple(range(value))
        return value

    @field_validator("measures")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            check_quantity(name)
        return value

    @field_validator("cost", mode="before")
    @classmethod
    def _from_a_file(cls, value: Any, info: ValidationInfo) -> Any:
        return read_cost(folder_of(info.context) / value) if isinstance(value, str) else value

    @property
    def facts(self) -> set[str]:
        """What must be known of a choice beside its runs."""
        return {fact for name in self.measures if name not in MEASURES for fact in QUANTITIES[name].facts}

    @property
    def run_measures(self) -> tuple[str, ...]:
        """What is measured of each run."""
        needed = (name if name in MEASURES else QUANTITIES[name].needs for name in self.measures)
        return tuple(dict.fromkeys(name for name in needed if name))

    @field_validator("axes")
    @classmethod
    def _choices(cls, value: dict[str, dict[str, Any]]) -> dict[str, Choices]:
        return {axis: _labelled(axis, choices) for axis, choices in value.items()}

    _document: located_yaml.Document | None = PrivateAttr(None)
    _base: Path = PrivateAttr(default_factory=Path)
    _made: Scenario | None = PrivateAttr(None)

    @model_validator(mode="wrap")
    @classmethod
    def _keep_scenario(cls, value: Any, handler: ModelWrapValidatorHandler[Sweep]) -> Sweep:
        """A scenario that was made in Python stays the object that it is."""
        made = value.get("scenario") if isinstance(value, dict) else None
        if not isinstance(made, Scenario):
            return handler(value)
        sweep = handler({**value, "scenario": plain(made, keep=True), "name": value.get("name") or made.name})
        sweep._made = made
        return sweep

    @classmethod
    def load(cls, path: str | Path, set: Changes = ()) -> Self:  # noqa: A002
        """Read a sweep from a file; every combination is tried on the scenario, none is run.

        Parameters
        ----------
        path
            A YAML file.
        set
            Changes of the sweep, as in ``{"seeds": 1}``, or texts as the command line takes them.

        Raises
        ------
        ScenarioError
            Each mistake, with its place.
        """
        path = Path(path)
        return sweep_from(located_yaml.read(path), path.parent, path.stem, set, kind=cls)

    def with_settings(self, changes: Changes) -> Self:
        """A copy with ``{"seeds": 1}`` or ``["seeds=1"]`` set.

        Raises
        ------
        ScenarioError
            A setting that the sweep doesn't have, or that can't be used.
        """
        return self.again_as(type(self), changes)

    def again_as(self, kind: type[_S], changes: Changes = ()) -> _S:
        """The same as another kind of sweep, with changes.

        Raises
        ------
        ScenarioError
            As for :meth:`with_settings`.
        """
        if isinstance(self, kind) and not changes:
            return self
        if self._document is not None:
            return sweep_from(settings.copied(self._document), self._base, self.name, changes, kind=kind)
        document = located_yaml.Document("", plain(self, keep=True))
        document.value["scenario"] = self._made or self.scenario
        return sweep_from(document, self._base, self.name, changes, kind=kind)

    def trial(self, labels: tuple[str, ...], changes: Mapping[str, Any]) -> Scenario:
        """The scenario with the settings of one combination, which the labels stand for.

        Raises
        ------
        ScenarioError
            It is none, or the settings don't fit it; says which labels.
        """
        try:
            if self._made is not None:
                return self._made.with_settings(changes)
            document, base = self._before_changes
            return from_document(settings.copied(document), base, self.name, changes)
        except ScenarioError as error:
            where = None if self._document is None else self._document.locate(("axes",))
            raise ScenarioError(f"{' / '.join(labels)}: {error}", location=where) from error

    @cached_property
    def _before_changes(self) -> tuple[located_yaml.Document, Path]:
        """The scenario, complete only with an axis' settings, and where its relative paths start."""
        if isinstance(self.scenario, str):
            place = self._base / self.scenario
            return located_yaml.read(place), place.parent
        if self._document is None:
            return located_yaml.Document("", self.scenario), self._base
        return settings.part(self._document, "scenario"), self._base

    @property
    def store_address(self) -> str | None:
        """Where its store is; None where it has none."""
        return str(self._base / self.store) if self.store and "://" not in self.store else self.store or None

    @property
    def num_runs(self) -> int:
        """Combinations times seeds."""
        return math.prod(map(len, self.chosen().values())) * len(self.seeds)

    @property
    def labels(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """(name, labels) of each axis."""
        return tuple((axis, tuple(choices)) for axis, choices in self.chosen().items())

    def combinations(self) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
        """Labels, one of each axis, and all settings that they stand for."""
        for chosen in itertools.product(*(choices.items() for choices in self.chosen().values())):
            merged: dict[str, Any] = {}
            for _, changes in chosen:
                merged |= changes
            yield tuple(label for label, _ in chosen), merged


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


def refuse_design(document: located_yaml.Document) -> None:
    """Refuse what says what it looks for.

    Raises
    ------
    InputError
        It is a design.
    """
    if found := [key for key in OF_A_DESIGN if key in document.value]:
        raise InputError(
            f"{document.file} is a design: it says {' and '.join(found)}",
            hint=f"`cosim search {document.file}` finds the best of it; without, `cosim run` runs all of it",
        )


def sweep_from(
    document: located_yaml.Document, base: Path, name: str, changes: Changes = (), *, kind: type[_S]
) -> _S:
    """A sweep, or what is more than one, from located YAML; ``name`` is used where it has none of its own.

    Raises
    ------
    ScenarioError
        Each mistake, with its place; of a sweep, those of every combination too.
    """
    check_document(document, base)
    settings.apply(document, changes)
    document.tell_comment()
    try:
        sweep = kind.model_validate(document.value, context={"folder": base})
    except ValidationError as error:
        from cosim.experiment.mistakes import scenario_error

        raise scenario_error(error, kind, document) from None
    if not sweep.name:
        sweep = sweep.model_copy(update={"name": name})
    if sweep._made is None:
        sweep._document = document
    sweep._base = base
    if kind is Sweep:
        for labels, merged in sweep.combinations():
            sweep.trial(labels, merged)
    return sweep
