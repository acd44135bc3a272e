"""A YAML file whose unknown keys are named rather than refused: mappings of texts that know their lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cosim.errors import Location, TopologyError
from cosim.files.located_yaml import Document, KeyPath, read
from cosim.registry import nearest


class Items(list[Any]):
    """A list; ``lines`` has each item's."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[int] = []


class Map(dict[str, Any]):
    """A mapping; ``file``, the line of each key in ``lines``, its own in ``line``."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__()
        self.file, self.line = file, line
        self.lines: dict[str, int] = {}

    def error(self, message: str, key: str | None = None, hint: str | None = None) -> TopologyError:
        """A mistake at a key, or at the mapping."""
        line = self.lines.get(key, self.line) if key is not None else self.line
        return TopologyError(message, location=Location(self.file, line, key), hint=hint)

    def item_error(self, message: str, key: str, number: int) -> TopologyError:
        """A mistake in item ``number`` of the list at a key."""
        return TopologyError(
            message, location=Location(self.file, self[key].lines[number], f"{key}[{number}]")
        )

    def texts(self, key: str) -> list[str]:
        """A list of texts; empty where the key is absent."""
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, Items) or any(isinstance(each, (Map, Items)) for each in value):
            raise self.error("should be a list of texts", key)
        return [str(each) for each in value]

    def text(self, key: str, default: str | None = None) -> str:
        """A text (or number, as text)."""
        value = self.get(key, default)
        if value is None:
            raise self.error(f"lacks {key!r}; it has: {', '.join(self) or 'nothing'}")
        if isinstance(value, (Map, list)):
            raise self.error("should be a text", key)
        return str(value)

    def whole(self, key: str, least: int, most: int) -> int | None:
        """A whole number, or None where the key is absent."""
        value = self.get(key)
        if value is None:
            return None
        plain = isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value) is not None
        if not plain or not least <= int(value) <= most:
            raise self.error(f"{_short(value)} should be a whole number from {least} to {most}", key)
        return int(value)

    def number(self, key: str) -> float:
        """A finite number above zero."""
        try:
            value = float(self.text(key))
        except ValueError:
            value = -1.0
        if not 0 < value < 1e15:
            raise self.error(f"{_short(self.text(key))} should be a number above zero", key)
        return value

    def maps(self, key: str) -> list[Map]:
        """A list of mappings; empty where the key is absent."""
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, Map) for each in value):
            raise self.error("should be a list of mappings", key)
        return value

    def map(self, key: str) -> Map | None:
        """A mapping, or None where the key is absent."""
        value = self.get(key)
        if value is not None and not isinstance(value, Map):
            raise self.error("should be a mapping", key)
        return value

    def one_of(self, key: str, names: tuple[str, ...], default: str) -> str:
        """One of a few names."""
        value = self.text(key, default)
        if value not in names:
            raise self.error(
                f"{_short(value)!r} should be one of {', '.join(names)}{nearest(value, names)}", key
            )
        return value


def _short(value: object) -> str:
    text = str(value) if not isinstance(value, (Map, list)) else "a list or mapping"
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_located(file: str, base: Path | None) -> Map:
    """The mapping that a YAML file holds; scalars are texts.

    Raises
    ------
    TopologyError
        No such file, not YAML, or no mapping.
    """
    path = (base or Path()) / file
    document = read(path, TopologyError, as_text=True)
    if not isinstance(document.value, dict):
        raise TopologyError("should be a mapping", location=Location(str(path), 1))
    return _map(document, document.value, ())


def _map(document: Document, value: dict[str, Any], path: KeyPath) -> Map:
    found = Map(document.file, document.lines[path])
    for key, inner in value.items():
        found.lines[key] = document.lines[(*path, key)]
        found[key] = _located(document, inner, (*path, key))
    return found


def _located(document: Document, value: Any, path: KeyPath) -> Any:
    if isinstance(value, dict):
        return _map(document, value, path)
    if isinstance(value, list):
        items = Items()
        for number, item in enumerate(value):
            items.append(_located(document, item, (*path, number)))
            items.lines.append(document.lines[(*path, number)])
        return items
    return value
