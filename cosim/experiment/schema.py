"""A JSON schema of scenarios and sweeps, so that editors complete them: ``cosim schema``.

It is made of what is installed, plug-ins of other packages included. It says less than the specs do: a value
that a field would take in a short form of its own is let through, and what fits together is for the specs.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from cosim.experiment.fields import UNITS
from cosim.experiment.scenario import Scenario
from cosim.experiment.search.design import Design
from cosim.network.named import ELSEWHERE
from cosim.plugin_file import PLUGIN
from cosim.registry import GROUPS, Named, find, names

Schema = dict[str, Any]

_TYPES: dict[Any, Schema] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}
_BOUNDS = {
    annotated_types.Ge: ("ge", "minimum"),
    annotated_types.Gt: ("gt", "exclusiveMinimum"),
    annotated_types.Le: ("le", "maximum"),
    annotated_types.Lt: ("lt", "exclusiveMaximum"),
    annotated_types.MinLen: ("min_length", "minItems"),
}
"""Bounds of a field, and what the schema calls them."""
_IN_FILE = r"\.py:[A-Za-z_]\w*$"


def schema() -> Schema:
    """The schema, of plain values; a file with ``axes`` is a sweep or a design, any other a scenario."""
    known = _Definitions()
    known.add_groups()
    one, many = known.model(Scenario), known.model(Design)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "cosim",
        "description": "A scenario, or a sweep or a design of one",
        "if": {"required": ["axes"]},
        "then": many,
        "else": one,
        "$defs": known.found,
    }


class _Definitions:
    """``$defs`` as they are found: of each group, each name, and each mapping inside."""

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}
        self._bases = {group.load_base(): name for name, group in GROUPS.items()}

    def add_groups(self) -> None:
        """What every group of entry points offers."""
        for group, told in GROUPS.items():
            listed = names(group)
            choices: list[Schema] = [
                {"enum": list(listed), "description": f"a {told.noun}"},
                {"type": "string", "pattern": _IN_FILE, "description": f"a {told.noun}: FILE.py:CLASS"},
                {"type": "object", "required": [PLUGIN], "properties": {PLUGIN: {"pattern": _IN_FILE}}},
                *(self._named(group, name) for name in listed),
            ]
            if group == "cosim.networks":
                short = [{"required": [key]} for key in sorted(ELSEWHERE)]
                choices.append({"type": "object", "not": {"required": [told.key]}, "anyOf": short})
            if group == "cosim.collectives":
                choices.append({"type": "string", "pattern": r"^direct[1-9]\d*$"})
            self.found[group] = {"anyOf": choices}

    def _named(self, group: str, name: str) -> Schema:
        place, key = f"{group}.{name}", GROUPS[group].key
        try:
            found = find(group, name)
        except ValueError:  # somebody's package is broken; the others are still worth completing
            return {"type": "object", "required": [key], "properties": {key: {"const": name}}}
        made = self._object(found if isinstance(found, type) else type(found))
        needed = made.get("required", []) if isinstance(found, type) else []
        made["properties"] = {key: {"const": name}, **made["properties"]}
        self.found[place] = {**made, "required": [key, *needed]}
        return {"$ref": f"#/$defs/{place}"}

    def model(self, model: type[BaseModel]) -> Schema:
        """A reference to a mapping."""
        place = f"{model.__module__}.{model.__qualname__}"
        if place not in self.found:
            self.found[place] = {}  # for one that has itself inside
            self.found[place] = self._object(model)
        return {"$ref": f"#/$defs/{place}"}

    def _object(self, model: type[BaseModel]) -> Schema:
        fields = {info.alias or key: (key, info) for key, info in model.model_fields.items()}
        short = _read_by_validators(model)
        made: Schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                shown: self._field(info, lenient=key in short) for shown, (key, info) in fields.items()
            },
        }
        if required := [shown for shown, (_, info) in fields.items() if info.is_required()]:
            made["required"] = required
        if model.__doc__:
            made["description"] = " ".join(model.__doc__.split("\n\n")[0].split())
        return made

    def _field(self, info: FieldInfo, *, lenient: bool) -> Schema:
        made = self._annotation(info.annotation, info.metadata)
        if lenient:  # a validator reads short forms, which only it knows
            made = {"anyOf": [made, {}]}
        if info.description:
            made = {**made, "description": info.description}
        return made

    def _annotation(self, annotation: Any, metadata: Sequence[Any] = ()) -> Schema:
        for item in metadata:
            if isinstance(item, Named):
                made: Schema = {"$ref": f"#/$defs/{item.group}"}
                return {"anyOf": [made, {"type": "null"}]} if type(None) in get_args(annotation) else made
            if isinstance(item, BeforeValidator) and item.func in UNITS:
                return {"type": ["string", "number"], "description": UNITS[item.func]}
        made = {**self._type(annotation)}
        if any(isinstance(item, BeforeValidator) for item in metadata):
            return {"anyOf": [made, {}]}
        for item in metadata:
            if type(item) in _BOUNDS and made.get("type") in ("integer", "number", "array"):
                here, there = _BOUNDS[type(item)]
                made[there] = getattr(item, here)
        return made

    def _type(self, annotation: Any) -> Schema:
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self._annotation(args[0], args[1:])
        if origin is Literal:
            return {"enum": list(args)}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self._type(one) for one in args]}
        if origin in (list, tuple, set, frozenset) or getattr(origin, "__name__", "") == "Sequence":
            inner = [one for one in args if one is not Ellipsis]
            return {"type": "array", "items": self._type(inner[0])} if inner else {"type": "array"}
        if origin is dict or getattr(origin, "__name__", "") == "Mapping":
            values = self._type(args[1]) if len(args) == 2 else True
            return {"type": "object", "additionalProperties": values}
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            return {"enum": [member.value for member in annotation]}
        if annotation in self._bases:
            return {"$ref": f"#/$defs/{self._bases[annotation]}"}
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return self.model(annotation)
        return _TYPES.get(annotation, {})


def _read_by_validators(model: type[BaseModel]) -> set[str]:
    """Fields that a validator of the class reads before pydantic does."""
    validators: Iterable[Any] = model.__pydantic_decorators__.field_validators.values()
    return {field for one in validators if one.info.mode != "after" for field in one.info.fields}
