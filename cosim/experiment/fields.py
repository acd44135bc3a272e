"""What a spec's field takes, in words: for ``cosim list KIND NAME`` and for error messages."""

from __future__ import annotations

import types
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from cosim.files.located_yaml import Key
from cosim.registry import GROUPS, Named, find, name_of, names
from cosim.units import format_rate, format_size, format_time, parse_rate, parse_size, parse_time
from cosim.written import parsers_of

UNITS = {
    parse_time: "a time such as 10us (ps, ns, us, ms, s)",
    parse_size: "a size such as 64MiB (B, kB, MB, GB, KiB, MiB, GiB)",
    parse_rate: "a rate such as 100Gbps or 50GB/s",
}
_FORMATS: dict[Any, Any] = {parse_time: format_time, parse_size: format_size, parse_rate: format_rate}
_PLAIN: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
    tuple: "a list",
    type(None): "nothing",
    Any: "anything",
}


def describe(field: FieldInfo) -> str:
    """``a time such as 10us (ps, ns, us, ms, s)``, ``a whole number, at least 1``."""
    return _describe(field.annotation, field.metadata)


def _describe(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    text = ""
    for item in metadata:
        if isinstance(item, Named):
            text = (
                f"one of {', '.join(names(item.group))}; or {{{item.key}: NAME, its fields}}, or "
                "{plugin: FILE.py:CLASS, its fields}"
            )
        elif isinstance(item, BeforeValidator) and item.func in UNITS:
            text = UNITS[item.func]
    return (text or _type(annotation)) + _bounds(metadata)


def _type(annotation: Any) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _describe(args[0], args[1:])
    if origin is Literal:
        shown = ["false" if a is False else "true" if a is True else str(a) for a in args]
        return f"one of {', '.join(shown)}" if len(shown) > 1 else shown[0]
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type(a) for a in args if a is not type(None)))
    if origin in (list, tuple, set, frozenset) or getattr(origin, "__name__", "") == "Sequence":
        inner = [a for a in args if a is not Ellipsis]
        return f"a list, each {_type(inner[0])}" if inner else "a list"
    if origin is dict or getattr(origin, "__name__", "") == "Mapping":
        return f"a mapping, each value {_type(args[1])}" if len(args) == 2 else "a mapping"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"one of {', '.join(str(member.value) for member in annotation)}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        keys = ", ".join(info.alias or key for key, info in annotation.model_fields.items())
        return f"a mapping of {keys}" if keys else "a name, or a mapping"
    return _PLAIN.get(annotation) or str(getattr(annotation, "__name__", annotation))


def models_in(field: FieldInfo) -> list[tuple[type[BaseModel], bool]]:
    """Classes of the mappings that a field takes, and whether it takes a list of them; named ones are not."""
    if any(isinstance(item, Named) for item in field.metadata):
        return []
    found: list[tuple[type[BaseModel], bool]] = []
    pending = [(field.annotation, False)]
    for annotation, listed in pending:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if annotation.model_fields:
                found.append((annotation, listed))
        elif get_origin(annotation) is not Annotated:
            inside = listed or get_origin(annotation) in (list, tuple)
            pending.extend((inner, inside) for inner in get_args(annotation))
    return found


def _bounds(metadata: Sequence[Any]) -> str:
    text = ""
    for item in metadata:
        if isinstance(item, annotated_types.Ge):
            text += f", at least {item.ge}"
        elif isinstance(item, annotated_types.Gt):
            text += f", above {item.gt}"
        elif isinstance(item, annotated_types.Le):
            text += f", at most {item.le}"
        elif isinstance(item, annotated_types.Lt):
            text += f", below {item.lt}"
    return text


def show_default(field: FieldInfo) -> str:
    """The default as a person would write it; empty where there is none."""
    if field.is_required():
        return ""
    return show(field, field.get_default(call_default_factory=True, validated_data={}))


def show(field: FieldInfo, value: Any) -> str:
    """A field's value as a person would write it."""
    for parser in parsers_of(field):
        if parser in _FORMATS and isinstance(value, int | float):
            return str(_FORMATS[parser](value))
    return _show(value)


def _show(value: Any) -> str:
    if isinstance(value, BaseModel):
        group = next((g for g in GROUPS if name_of(g, type(value))), None)
        name = name_of(group, type(value)) if group else None
        given = ", ".join(f"{k}: {_show(v)}" for k, v in value if k in value.model_fields_set)
        return " ".join(part for part in (name or "", f"{{{given}}}" if given else "") if part)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_show(v)}" for k, v in value.items()) + "}"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def field_at(model: type[BaseModel], value: Any, path: Sequence[Key]) -> FieldInfo | None:
    """The field that ``path`` means in a raw value of ``model``; None where that can't be said."""
    here: Any = model
    field: FieldInfo | None = None
    for key in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            field = here.model_fields.get(str(key))
            if field is None:
                return None
            value = value.get(key) if isinstance(value, dict) else None
            here = _model_of(field, value)
        else:
            field = None
            value = _item(value, key)
            here = _item_model(here)
    return field


def _item(value: Any, key: Key) -> Any:
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        return None


def _item_model(annotation: Any) -> Any:
    args = [a for a in get_args(annotation) if a is not Ellipsis]
    return args[-1] if args else None


def _model_of(field: FieldInfo, value: Any) -> Any:
    for item in field.metadata:
        if isinstance(item, Named):
            name = value.get(item.key) if isinstance(value, dict) else value
            if isinstance(name, str) and name in names(item.group):
                try:
                    found = find(item.group, name)
                except ValueError:  # a broken package; that is the mistake then, not the field
                    return None
                return found if isinstance(found, type) else type(found)
    return field.annotation


def group_of(word: str) -> str | None:
    """The entry-point group that ``topology``, ``topologies`` or ``cosim.topologies`` means."""
    asked = word.lower().replace("-", " ").replace("_", " ")
    for group, about in GROUPS.items():
        single = about.noun
        plural = group.removeprefix("cosim.").replace("_", " ")
        if asked in (
            f"cosim.{plural}",
            plural,
            plural.removesuffix("s"),
            single,
            *single.split(),
            single + "s",
        ):
            return group
    return None
