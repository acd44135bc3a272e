"""YAML that remembers where each value stands, so that an error can point at file, line and key.

Follows PyYAML's safe loader, with three differences: a key given twice is refused (YAML says so, PyYAML
keeps the last), a key is always the text as written (``on:`` is not ``True``), and a number such as ``1e9``
is a number (YAML 1.2), while ``1:30`` and ``012`` are text (YAML 1.1 reads 90 and 10).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cosim.errors import Location, ScenarioError

Key = str | int
KeyPath = tuple[Key, ...]

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)$")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9_]*)(\.[0-9_]*)?|\.[0-9_]+)([eE][-+]?[0-9]+)?$")


def show_path(path: Sequence[Key]) -> str:
    """``jobs[0].workload.layers``."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


@dataclass
class Document:
    """A YAML value, with the line of each key and item, and the ``--set`` that each change came from."""

    file: str
    value: Any
    lines: dict[KeyPath, int] = field(default_factory=dict)
    settings: dict[KeyPath, str] = field(default_factory=dict)

    def locate(self, path: Sequence[Key]) -> Location:
        """Where the value at ``path`` was said, or its nearest parent that was."""
        where, key = tuple(path), show_path(path) or None
        for length in range(len(where), -1, -1):
            parent = where[:length]
            if parent in self.settings:
                return Location(f"--set {self.settings[parent]}", None, key if length < len(where) else None)
            if parent in self.lines:
                return Location(self.file, self.lines[parent], key)
            made = next(
                (text for path, text in self.settings.items() if parent and path[:length] == parent), None
            )
            if made is not None:
                return Location(f"--set {made}", None, key)
        return Location(self.file, 1 if self.lines else None, key)


def read(path: Path) -> Document:
    """Read a file.

    Raises
    ------
    ScenarioError
        No such file, not text, or not YAML; with the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ScenarioError(
            "there is no such file", location=Location(str(path)), hint=_beside(path)
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"can't be read: {error}", location=Location(str(path))) from None
    return parse(text, str(path))


def _beside(path: Path) -> str | None:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    others = sorted(p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml"))
    return f"in {path.parent}: {', '.join(others)}" if others else None


def parse(text: str, file: str) -> Document:
    """Parse one YAML document.

    Raises
    ------
    ScenarioError
        Not YAML, more than one document, or a key given twice; with the line.
    """
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        place = Location(file, text.count("\n", 0, error.position) + 1)
        raise ScenarioError(
            f"this is not YAML: it holds the character {text[error.position]!r}", location=place
        ) from None
    try:
        node = loader.get_single_node()
        document = Document(file, None)
        if node is not None:
            document.lines[()] = node.start_mark.line + 1
            document.value = _construct(loader, node, (), document, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        problem = " ".join(part for part in (error.context, error.problem) if part)
        hint = "YAML indents with spaces, not tabs" if "'\\t'" in problem else None
        raise ScenarioError(
            f"this is not YAML: {problem}", location=Location(file, line), hint=hint
        ) from None
    except yaml.YAMLError as error:
        raise ScenarioError(f"this is not YAML: {error}", location=Location(file)) from None
    finally:
        loader.dispose()
    return document


def parse_value(text: str) -> Any:
    """A YAML value without locations, as in ``--set path=value``.

    Raises
    ------
    ScenarioError
        Not YAML.
    """
    return parse(text, "value").value


def _construct(
    loader: yaml.SafeLoader, node: yaml.Node, path: KeyPath, document: Document, inside: tuple[int, ...]
) -> Any:
    line = node.start_mark.line + 1
    if id(node) in inside:
        raise ScenarioError(
            "this value contains itself", location=Location(document.file, line, show_path(path))
        )
    inside = (*inside, id(node))
    if isinstance(node, yaml.ScalarNode):
        return _scalar(loader, node)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for index, item in enumerate(node.value):
            document.lines[(*path, index)] = item.start_mark.line + 1
            items.append(_construct(loader, item, (*path, index), document, inside))
        return items
    assert isinstance(node, yaml.MappingNode)
    value: dict[str, Any] = {}
    for key, key_line, item in _pairs(node, path, document):
        document.lines[(*path, key)] = key_line
        value[key] = _construct(loader, item, (*path, key), document, inside)
    return value


def _scalar(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    text = node.value
    if node.style is None and not node.tag.endswith((":null", ":bool")):
        if _INTEGER.match(text):
            return int(text.replace("_", ""))
        if _FLOAT.match(text):
            return float(text.replace("_", ""))
        if node.tag.endswith((":int", ":float", ":timestamp")) and not text.startswith(
            ("0x", "0b", ".", "-.")
        ):
            return text
    return loader.construct_object(node, deep=True)


def _pairs(node: yaml.MappingNode, path: KeyPath, document: Document) -> Iterator[tuple[str, int, yaml.Node]]:
    """Keys, their lines and values; those merged in by ``<<`` first, unless given here."""
    own: dict[str, tuple[int, yaml.Node]] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            where = Location(document.file, line, show_path(path) or None)
            raise ScenarioError("a key must be text", location=where)
        if key_node.tag.endswith(":merge"):
            merged = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            for other in merged:
                if not isinstance(other, yaml.MappingNode):
                    where = Location(document.file, line, show_path(path) or None)
                    raise ScenarioError("'<<' merges a mapping", location=where)
                yield from (
                    pair
                    for pair in _pairs(other, path, document)
                    if all(pair[0] != given.value for given, _ in node.value)
                )
            continue
        key = key_node.value
        if key in own:
            where = Location(document.file, line, show_path((*path, key)))
            raise ScenarioError(f"the key {key!r} was already given in line {own[key][0]}", location=where)
        own[key] = (line, value_node)
        yield key, line, value_node
