"""A design: a sweep whose axes are what there is to choose, by which objectives, within which constraints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from cosim.errors import InputError
from cosim.experiment.scenario import is_sweep
from cosim.experiment.search.contract import Optimizer
from cosim.experiment.search.optimizers.bounds import BestFirst
from cosim.experiment.settings import Changes
from cosim.experiment.sweep import Sweep, sweep_from
from cosim.files.located_yaml import Document, parse, read
from cosim.registry import Named, located
from cosim.results.quantities import QUANTITIES, check_quantity
from cosim.spec import Spec
from cosim.written import plain


class FidelityLevel(Spec):
    """How closely runs are simulated before those that matter are simulated more closely"""

    settings: dict[str, Any] = Field({}, description="of the scenario at this level: {network: fair_share}")
    within: float = Field(
        0.05,
        ge=0,
        allow_inf_nan=False,
        description="points that are worse than this level's best by so much at most go on to the next: 0.05",
    )


class Design(Sweep):
    """What there is to choose, and what for

    What `cosim search` reads; :func:`cosim.search` takes it as a file, a text or one of these.

    Examples
    --------
    >>> import cosim
    >>> rates = {"rate": {"topology.rate": ["80Gbps", "40Gbps"]}}
    >>> design = cosim.Design(scenario={}, axes=rates, objective=["iteration"])
    >>> design.objective, design.axes["rate"]["40Gbps"]
    (('iteration',), {'topology.rate': '40Gbps'})
    """

    objective: tuple[str, ...] = Field(
        (), description=f"one or several of {', '.join(QUANTITIES)}; omitted: the first of measures"
    )
    constraints: dict[str, str | float] = Field(
        {}, description="quantity: the most it may be, {price: 10M}; where more is better, the least"
    )
    fidelity: tuple[FidelityLevel, ...] = Field(
        (), description="from the quickest to the one that counts; omitted: the scenario as it is"
    )
    optimizer: Annotated[Optimizer, Named("cosim.optimizers")] = Field(
        BestFirst(), description="what to run next, of `cosim list optimizer`"
    )
    tolerance: float = Field(
        0.0, ge=0, lt=1, description="end when no other point can be better by more than this share: 0.02"
    )
    runs: int | None = Field(None, ge=1, description="points to run at most; omitted: as many as it takes")
    what_if: dict[str, dict[str, Any]] = Field(
        {},
        description="what could happen, tried on the first three: {a spine fails: {events: [{node: spine0, "
        "down: true}]}}",
    )
    at_once: int = Field(
        1, ge=1, description="points that are run together; others for the executor's workers to do meanwhile"
    )

    @field_validator("objective", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("objective")
    @classmethod
    def _known_objectives(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            check_quantity(name)
        if len(set(value)) < len(value):
            raise ValueError(f"{', '.join(value)}: one of them twice")
        return value

    @field_validator("constraints")
    @classmethod
    def _are_limits(cls, value: dict[str, str | float]) -> dict[str, str | float]:
        wrong: list[tuple[tuple[str | int, ...], str, Any]] = []
        for name, limit in value.items():
            try:
                check_quantity(name)
                QUANTITIES[name].unit.read(limit)
            except ValueError as error:
                wrong.append(((name,), str(error), limit))
        if wrong:
            raise located("constraints", wrong)
        return value

    @property
    def limits(self) -> dict[str, float]:
        """The constraints, as numbers of their quantities."""
        return {name: QUANTITIES[name].unit.read(limit) for name, limit in self.constraints.items()}

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of what is optimised."""
        return self.objective or self.measures[:1]

    @property
    def levels(self) -> tuple[FidelityLevel, ...]:
        """How runs are simulated, one at least."""
        return self.fidelity or (FidelityLevel(),)

    @property
    def facts(self) -> set[str]:
        """What must be known of a point beside its runs."""
        return {fact for name in self._asked for fact in QUANTITIES[name].facts}

    @property
    def run_measures(self) -> tuple[str, ...]:
        """What is measured of each run."""
        needed = (QUANTITIES[name].needs for name in self._asked)
        return tuple(dict.fromkeys(name for name in needed if name))

    @property
    def _asked(self) -> tuple[str, ...]:
        return (*self.objectives, *self.constraints, *self.measures)


def read_design(source: Sweep | Mapping[str, Any] | str | Path, changes: Changes = ()) -> Design:
    """The design that is meant; some of its points may not fit together.

    Parameters
    ----------
    source
        A design or a sweep, its values, a YAML file, or YAML text (with a line break).
    changes
        Of the design, as in ``{"seeds": 1}``.

    Raises
    ------
    InputError
        It has nothing to choose, or a mistake.
    """
    if isinstance(source, Sweep):
        return source.again_as(Design, changes)
    if isinstance(source, Mapping):
        document, base, name = Document("design", plain(source, keep=True)), Path(), "design"
    elif isinstance(source, str) and "\n" in source:
        document, base, name = parse(source, "design"), Path(), "design"
    else:
        path = Path(source)
        document, base, name = read(path), path.parent, path.stem
    if not is_sweep(document):
        raise InputError(f"{document.file} has nothing to choose: it has no axes", hint="`cosim run` runs it")
    return sweep_from(document, base, name, changes, kind=Design)
