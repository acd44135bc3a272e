"""Mistakes in a scenario: pydantic's errors, said with file, line, key, value and what would be right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from pydantic import BaseModel, ValidationError

from cosim.errors import InputError, ScenarioError
from cosim.experiment.fields import describe, field_at
from cosim.files.located_yaml import Document, Key, show_path
from cosim.registry import GROUPS, Named, nearest

_SHOWN = 12

_WRONG = {
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "float_type": "is not a number",
    "float_parsing": "is not a number",
    "finite_number": "is not a finite number",
    "bool_type": "is not true or false",
    "bool_parsing": "is not true or false",
    "string_type": "is not text",
    "too_short": "has too few items",
    "list_type": "is not a list",
    "tuple_type": "is not a list",
    "dict_type": "is not a mapping of keys to values",
    "mapping_type": "is not a mapping of keys to values",
    "model_type": "is not a mapping of keys to values",
    "model_attributes_type": "is not a mapping of keys to values",
}


def find_named(group: str, base: type[BaseModel], said: Any) -> Any:
    """What a name of a group means, ``{kind: NAME, ...}`` or a plug-in's file, from the working folder on.

    Raises
    ------
    InputError
        No such one, or settings that it doesn't have.
    """
    value = dict(said) if isinstance(said, Mapping) else said
    try:
        return Named(group).resolve(value)
    except ValidationError as error:
        raise scenario_error(error, base, Document(GROUPS[group].noun, value)) from None
    except ValueError as error:
        raise InputError(str(error)) from None


def scenario_error(error: ValidationError, model: type[BaseModel], document: Document) -> ScenarioError:
    """One error that lists every mistake, in the order of the file."""
    found: dict[tuple[Key, ...], tuple[str, str | None]] = {}
    items = error.errors(include_url=False)
    for item in items:
        if item["type"] == "too_short" and _has_deeper(items, item["loc"]):
            continue  # pydantic counts the good items only
        path = _known_part(document.value, item["loc"], item["type"])
        text, hint = _say(item, path, model, document)
        if path in found and found[path][0] != text:
            earlier, earlier_hint = found[path]
            found[path] = (f"{earlier}, and {text}", hint or earlier_hint)
        else:
            found[path] = (text, hint)
    mistakes = [
        ScenarioError(said[0], location=document.locate(path), hint=said[1]) for path, said in found.items()
    ]
    mistakes.sort(key=lambda mistake: (mistake.location.line or 0) if mistake.location else 0)
    first = mistakes[0]
    if len(mistakes) == 1:
        return first
    more = [first.hint] if first.hint else []
    more += [str(mistake) for mistake in mistakes[1:_SHOWN]]
    if len(mistakes) > _SHOWN:
        more.append(f"... and {len(mistakes) - _SHOWN} more")
    return ScenarioError(first.message, location=first.location, hint="\n".join(more))


def _has_deeper(items: Sequence[Any], path: tuple[Key, ...]) -> bool:
    return any(len(item["loc"]) > len(path) and item["loc"][: len(path)] == path for item in items)


def _known_part(value: Any, path: Sequence[Key], kind: str) -> tuple[Key, ...]:
    """``path`` without what pydantic adds for unions and validators, which the scenario doesn't have."""
    known: list[Key] = []
    for n, key in enumerate(path):
        if isinstance(value, dict) and key in value:
            value = value[key]
            known.append(key)
        elif isinstance(value, list) and isinstance(key, int):
            value = value[key] if key < len(value) else None
            known.append(key)
        elif kind == "missing" and n == len(path) - 1:
            known.append(key)
    return tuple(known)


def _as_written(value: Any, path: tuple[Key, ...], parsed: Any) -> Any:
    """What stands in the scenario, of which pydantic may only know what it was parsed to."""
    try:
        for key in path:
            value = value[key]
    except (KeyError, IndexError, TypeError):
        return parsed
    return value


def _show(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _say(
    item: Any, path: tuple[Key, ...], model: type[BaseModel], document: Document
) -> tuple[str, str | None]:
    """The mistake and what would be right."""
    kind, context = item["type"], item.get("ctx", {})
    value = _as_written(document.value, path, item["input"])
    field = field_at(model, document.value, path)
    right = None
    # Of a choice whose own fields don't go together, the other choices are no help.
    if field is not None and not (kind in ("cosim", "value_error") and isinstance(value, dict)):
        what = f": {field.description}" if field.description else ""
        right = f"it takes {describe(field)}{what}"
    if kind == "cosim":
        text, _, hint = str(item["msg"]).partition("\n  ")
        if text.startswith("unknown key ") and (place := _who_takes(path, model, document.value)):
            return f"unknown key {path[-1]!r}; {place} takes it", hint
        return text, hint or right
    if kind == "value_error":
        text, _, hint = str(context["error"]).partition("\n  ")
        return text, hint or right
    if kind == "missing":
        return "is missing", right
    if kind == "literal_error":
        choices = [str(a) for a in _choices(context)]
        return f"{_show(value)} is not one of {', '.join(choices)}{nearest(str(value), choices)}", None
    if kind in _WRONG:
        return f"{_show(value)} {_WRONG[kind]}", right
    message = str(item["msg"])
    message = message.removeprefix("Input ").removeprefix("Value ")
    return f"{_show(value)} {message[:1].lower()}{message[1:]}", right


def _who_takes(path: tuple[Key, ...], model: type[BaseModel], value: Any) -> str:
    """The mapping nearest to a key's that takes the key; empty: none does."""
    *here, key = path
    found = [one for one in _mappings(value, ()) if field_at(model, value, (*one, key)) is not None]

    def distance(one: tuple[Key, ...]) -> int:
        shared = takewhile(lambda keys: keys[0] == keys[1], zip(one, here, strict=False))
        return len(one) - 2 * sum(1 for _ in shared)

    nearest_one = min(found, key=distance, default=None)
    return "" if nearest_one is None else show_path(nearest_one) or "the top level"


def _mappings(value: Any, path: tuple[Key, ...]) -> Iterator[tuple[Key, ...]]:
    """Where a value has mappings, itself first."""
    if isinstance(value, dict):
        yield path
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(one, dict | list):
            yield from _mappings(one, (*path, key))


def _choices(context: dict[str, Any]) -> list[str]:
    spoken = {"False": "false", "True": "true", "None": "null"}
    return [
        spoken.get(part, part.strip("'"))
        for part in str(context.get("expected", "")).replace(" or ", ", ").split(", ")
    ]
