"""A spec back as plain values, with units, so that reading them gives the spec again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from cosim.errors import ScenarioError
from cosim.plugin_file import PLUGIN, named_in_file
from cosim.registry import GROUPS, name_of
from cosim.units import parse_rate, parse_span, parse_time


def parsers_of(field: FieldInfo) -> list[Any]:
    """The functions that read the field's text (``parse_time`` ...), of every alternative that it has."""
    pending: list[Any] = [field.annotation, *field.metadata]
    found = []
    for item in pending:
        if isinstance(item, BeforeValidator):
            found.append(item.func)
        elif get_origin(item) is not None:
            pending.extend(get_args(item))
    return found


def plain(value: Any, *, defaults: bool = False, keep: bool = False) -> Any:
    """``value`` as what YAML can hold; ``defaults`` says whether settings that were not given are shown.

    With ``keep`` an object that only Python can make stays as it is.

    Raises
    ------
    ScenarioError
        An object that only Python can make, such as a ``Topology`` built by hand.
    """
    if isinstance(value, BaseModel):
        shown: dict[str, Any] = {}
        for group, about in GROUPS.items():
            name = name_of(group, type(value))
            if name is not None:
                shown[about.key] = name
        in_file = named_in_file(type(value))
        if in_file is not None:
            shown[PLUGIN] = in_file
        for key, info in type(value).model_fields.items():
            if defaults or key in value.model_fields_set:
                shown[info.alias or key] = _with_unit(info, getattr(value, key), defaults, keep)
        return shown
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v, defaults=defaults, keep=keep) for k, v in value.items()}
    if isinstance(value, Sequence):
        return [plain(item, defaults=defaults, keep=keep) for item in value]
    if keep:
        return value
    raise ScenarioError(f"a {type(value).__name__} made in Python can't be written as YAML")


def _with_unit(info: FieldInfo, value: Any, defaults: bool, keep: bool) -> Any:
    if isinstance(value, int | float):
        parsers = parsers_of(info)
        if parse_time in parsers or parse_span in parsers:
            return f"{value}ps"
        if parse_rate in parsers:
            return f"{value!r}bps"
    return plain(value, defaults=defaults, keep=keep)
