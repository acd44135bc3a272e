"""YAML as plain values that know their lines, for files whose unknown keys are named rather than refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from cosim.errors import Location, TopologyError
from cosim.files.yamlfile import compose
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
    path = Path(file) if base is None else base / file
    node = compose(path)
    if not isinstance(node, yaml.MappingNode):
        raise TopologyError("a topology file is a mapping", location=Location(str(path), 1))
    try:
        found = _value(node, str(path), {}, 0)
    except RecursionError:
        raise TopologyError("nested too deep", location=Location(str(path), 1)) from None
    assert isinstance(found, Map)
    return found


def _value(node: Any, file: str, known: dict[int, Any], depth: int) -> Any:
    if id(node) in known:  # an alias
        return known[id(node)]
    line = node.start_mark.line + 1
    if depth > 40:
        raise TopologyError("nested more than 40 deep", location=Location(file, line))
    if isinstance(node, yaml.ScalarNode):
        empty = node.value in ("", "~", "null") and node.style is None
        return None if empty else node.value
    if isinstance(node, yaml.SequenceNode):
        items = Items()
        known[id(node)] = items
        for item in node.value:
            items.append(_value(item, file, known, depth + 1))
            items.lines.append(item.start_mark.line + 1)
        return items
    found = Map(file, line)
    known[id(node)] = found
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else "?"
        at = key.start_mark.line + 1
        if name in found:
            raise TopologyError(f"{name!r} is given twice", location=Location(file, at))
        found.lines[name] = at
        found[name] = _value(value, file, known, depth + 1)
    return found
