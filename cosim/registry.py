"""The registry: names that a scenario can use, found by entry point, loaded one at a time.

A package adds a topology by an entry point in the group ``cosim.topologies``; nothing is imported until a
scenario names it. :class:`Named` is the field annotation that turns ``{kind: ring, ...}`` or ``ring`` into
the spec that the entry point points at, with errors that keep their place in the scenario::

    class Job(Spec):
        workload: Annotated[Spec, Named("cosim.workloads")]
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

GROUPS = {
    "cosim.networks": "network",
    "cosim.controls": "congestion control",
    "cosim.topologies": "topology",
    "cosim.routings": "routing",
    "cosim.workloads": "workload",
    "cosim.models": "model",
    "cosim.gpus": "gpu",
    "cosim.frameworks": "framework",
    "cosim.collectives": "collective algorithm",
    "cosim.placements": "placement",
    "cosim.formats": "format",
    "cosim.arrivals": "arrival process",
}
"""Entry-point groups, and what one of each is called."""


@lru_cache(maxsize=1)
def _all() -> dict[str, dict[str, EntryPoint]]:
    found: dict[str, dict[str, EntryPoint]] = {group: {} for group in GROUPS}
    installed = entry_points()
    for group, known in found.items():
        for point in installed.select(group=group):
            other = known.setdefault(point.name, point)
            if other.value != point.value:
                raise ValueError(
                    f"two packages offer the {GROUPS[group]} {point.name!r}: {other.value} and {point.value}"
                )
    return found


def names(group: str) -> tuple[str, ...]:
    """Every name of a group, sorted."""
    return tuple(sorted(_all()[group]))


def nearest(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'ring'?"``, or nothing where nothing is near."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def find(group: str, name: str) -> Any:
    """The object behind a name; imports its module and nothing else.

    Raises
    ------
    ValueError
        No such name: suggests the nearest and lists what there is. Or its package is broken.
    """
    point = _all()[group].get(name)
    if point is None:
        known = names(group)
        raise ValueError(
            f"there is no {GROUPS[group]} {name!r}{nearest(name, known)}\n  there are: {', '.join(known)}"
        )
    try:
        return point.load()
    except ImportError as error:
        raise ValueError(f"the {GROUPS[group]} {name!r} can't be imported: {error}") from error


def name_of(group: str, kind: type) -> str | None:
    """The name under which a class is registered, without importing anything."""
    value = f"{kind.__module__}:{kind.__qualname__}"
    return next((name for name, point in sorted(_all()[group].items()) if point.value == value), None)


def refuse_unknown_keys(model: type[BaseModel], data: dict[Any, Any], extra: Iterable[str] = ()) -> None:
    """Raise for the keys that ``model`` doesn't have, each with the nearest one that it has.

    Raises
    ------
    ValidationError
        Located at each unknown key.
    """
    known = [*extra, *(info.alias or name for name, info in model.model_fields.items())]
    accepted = {*known, *model.model_fields}
    unknown = [key for key in data if key not in accepted]
    if unknown:
        listed = f"keys here: {', '.join(known)}" if known else "it has no keys"
        raise located(
            model.__name__,
            [
                (
                    (str(key),),
                    f"unknown key {str(key)!r}{nearest(str(key), known)}\n  {listed}",
                    data[key],
                )
                for key in unknown
            ],
        )


def located(title: str, errors: Iterable[tuple[tuple[str | int, ...], str, Any]]) -> ValidationError:
    """A validation error of (path, text, value) each: raised in a validator, an outer one adds its place."""
    return ValidationError.from_exception_data(
        title,
        [InitErrorDetails(type=_error(text), loc=path, input=value) for path, text, value in errors],
    )


def _error(text: str) -> PydanticCustomError:
    return PydanticCustomError("cosim", "{text}", {"text": text})


@dataclass(frozen=True)
class Named:
    """Field annotation: a name, a mapping that holds the name under ``key``, or the made object itself.

    ``also`` are classes whose objects pass as they are, for scenarios built in Python.
    """

    group: str
    key: str = "kind"
    also: tuple[type, ...] = ()

    def resolve(self, value: Any) -> Any:
        """The spec that ``value`` describes.

        Raises
        ------
        ValueError
            Unknown name, or not a description at all.
        ValidationError
            The description has mistakes; locations are relative to it.
        """
        from cosim.spec import Spec

        if isinstance(value, (Spec, *self.also)):
            return value
        if isinstance(value, str):
            value = {self.key: value}
        known = ", ".join(names(self.group))
        what = GROUPS[self.group]
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is not a {what}; write {self.key}: NAME\n  there are: {known}")
        if self.key not in value:
            other = next((k for k in ("kind", "model", "algorithm", "type", "name") if k in value), None)
            swap = f", not {other!r}" if other else ""
            raise ValueError(f"a {what} needs the key {self.key!r}{swap}\n  there are: {known}")
        name = value[self.key]
        try:
            found = find(self.group, str(name))
        except ValueError as error:
            raise located(what, [((self.key,), str(error), name)]) from None
        settings = {k: v for k, v in value.items() if k != self.key}
        if isinstance(found, BaseModel):
            if not settings:
                return found
            from cosim.written import plain

            settings = {k: v for k, v in plain(found).items() if k in type(found).model_fields} | settings
            found = type(found)
        return found.model_validate(settings)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.resolve)
