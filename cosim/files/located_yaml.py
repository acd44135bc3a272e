"""The YAML reader: values, and where each stands, so that an error can point at file, line and key.

Like PyYAML's safe loader, with these differences: a key given twice is refused (YAML says so, PyYAML keeps
the last), a key is always the text as written (``on:`` is not ``True``), a number such as ``1e9`` is a number
(YAML 1.2), while ``1:30``, ``012`` and ``2020-01-01`` are text (YAML 1.1 reads 90, 10 and a date), and no tag
makes an object. It is built from the parser's events, which libyaml gives fast, rather than from its nodes,
whose nesting can overflow the stack of libyaml's binding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from cosim.errors import InputError, Location, ScenarioError
from cosim.files.text import read_text

Key = str | int
KeyPath = tuple[Key, ...]
Model = TypeVar("Model", bound=BaseModel)

MAX_DEPTH = 100
MAX_ALIASED = 1 << 20
"""Values that aliases may stand for in all: nine lines can be made to mean a thousand million."""

_LOADERS: list[Any] = [yaml.CSafeLoader, yaml.SafeLoader] if yaml.__with_libyaml__ else [yaml.SafeLoader]
_NUMBER = re.compile(r"[-+.0-9]")
_LONGEST_NUMBER = 4000
"""Digits; Python converts no more."""
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)$")
_BASED = re.compile(r"0x_?[0-9a-fA-F]+(_[0-9a-fA-F]+)*$|0b_?[01]+(_[01]+)*$")
_SURROGATE = re.compile("[\ud800-\udfff]")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)$")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9_]*)(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?$")
_WORDS: dict[str, Any] = {
    written: value
    for value, words in {None: ("null",), True: ("true", "yes", "on"), False: ("false", "no", "off")}.items()
    for word in words
    for written in (word, word.capitalize(), word.upper())
} | {"": None, "~": None, ".nan": float("nan"), ".NaN": float("nan"), ".NAN": float("nan")}


def show_path(path: Sequence[Key]) -> str:
    """``jobs[0].workload.layers``."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


@dataclass
class Document:
    """A YAML value, with the line of each key and item, the ``--set`` that each change came from, and the
    comment that the text begins with.
    """

    file: str
    value: Any
    lines: dict[KeyPath, int] = field(default_factory=dict)
    settings: dict[KeyPath, str] = field(default_factory=dict)
    comment: str = ""

    def tell_comment(self) -> None:
        """Have the comment that it begins with be its description, where it has none of its own."""
        if self.comment and isinstance(self.value, dict):
            self.value.setdefault("description", self.comment)

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


def read(
    path: Path, error: type[InputError] = ScenarioError, *, hint: str | None = None, as_text: bool = False
) -> Document:
    """Read a file that holds one YAML document; see :func:`parse`. ``hint``: where it would be from.

    Raises
    ------
    error
        No such file, not text, or not YAML; with the line.
    """
    if not path.exists():
        raise error("there is no such file", location=Location(str(path)), hint=hint or _beside(path))
    return parse(read_text(path, error), str(path), error, as_text=as_text)


def _beside(path: Path) -> str | None:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    others = sorted(p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml"))
    return f"in {path.parent}: {', '.join(others)}" if others else None


def read_model(path: Path, model: type[Model], error: type[InputError]) -> Model:
    """Read a file that holds a mapping, as ``model``; see :func:`as_model`."""
    return as_model(read(path, error), model, error)


def as_model(document: Document, model: type[Model], error: type[InputError], *keys: str) -> Model:
    """What stands at some keys of a document, as ``model``.

    Raises
    ------
    error
        No mapping, or not what the model wants: its first mistake, with line and key.
    """
    value = document.value
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, dict):
        fields = ", ".join(model.model_fields)
        raise error("should be a mapping", location=document.locate(keys), hint=f"its keys: {fields}")
    try:
        return model.model_validate(value)
    except ValidationError as problem:
        first = problem.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        raise error(message, location=document.locate((*keys, *first["loc"]))) from None


_COMMANDS = ("cosim ", "python ", "--set ")


def _first_comment(text: str) -> str:
    """What a text says before its first key, up to an empty line, not what is for editors: in one line, but
    that commands have lines of their own.
    """
    lines = takewhile(lambda line: line.strip(" #"), text.splitlines())
    parts: list[str] = []
    joined = False
    for line in takewhile(lambda line: line.startswith("#"), lines):
        told = line.lstrip("# ")
        if told.startswith("yaml-language-server:"):
            continue
        command = line.startswith("#  ") and told.startswith(_COMMANDS)
        if joined and not command:
            parts[-1] += f" {told}"
        else:
            parts.append(told)
        joined = not command
    return "\n".join(parts)


def parse_value(text: str) -> Any:
    """A YAML value without locations, as in ``--set path=value``.

    Raises
    ------
    ScenarioError
        Not YAML.
    """
    return parse(text, "value").value


def parse(
    text: str, file: str, error: type[InputError] = ScenarioError, *, as_text: bool = False
) -> Document:
    """Parse one YAML document.

    Parameters
    ----------
    text
        The YAML.
    file
        What errors call it.
    error
        What is raised.
    as_text
        Leave numbers, booleans and words as they are written; only nothing is None.

    Raises
    ------
    error
        Not YAML, more than one document, a key given twice, or nested too deep; with the line.
    """
    bad = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if bad is not None:
        place = Location(file, text.count("\n", 0, bad.start()) + 1)
        raise error(f"this is not YAML: it holds the character {bad.group()!r}", location=place)
    problem = yaml.YAMLError()
    for loader in _LOADERS:  # the second one only for its clearer words where the first gives up
        try:
            found = _ValueBuilder(yaml.parse(text, Loader=loader), file, error, as_text).document()
            found.comment = _first_comment(text)
            return found
        except yaml.YAMLError as found:
            problem = found
    raise _syntax_error(problem, file, error) from None


def _syntax_error(problem: yaml.YAMLError, file: str, error: type[InputError]) -> InputError:
    if not isinstance(problem, yaml.MarkedYAMLError):
        return error(f"this is not YAML: {problem}", location=Location(file))
    mark = problem.problem_mark or problem.context_mark
    said = " ".join(part for part in (problem.context, problem.problem) if part)
    hint = "YAML indents with spaces, not tabs" if "'\\t'" in said else None
    line = None if mark is None else mark.line + 1
    return error(f"this is not YAML: {said}", location=Location(file, line), hint=hint)


def _line(event: Event) -> int:
    assert event.start_mark is not None
    return event.start_mark.line + 1


class _ValueBuilder:
    """Builds a document's value from a parser's events, writing down the line of each key and item."""

    def __init__(self, events: Iterator[Event], file: str, error: type[InputError], as_text: bool) -> None:
        self.events, self.file, self.error, self.as_text = events, file, error, as_text
        self.lines: dict[KeyPath, int] = {}
        self.anchors: dict[str, tuple[Any, KeyPath]] = {}
        self.open: set[str] = set()
        """Anchors of values that aren't complete."""
        self.aliased = 0

    def document(self) -> Document:
        """The one document; nothing at all is None."""
        next(self.events)
        event, value = next(self.events), None
        if isinstance(event, DocumentStartEvent):
            value = self._value(next(self.events), ())
            next(self.events)
            event = next(self.events)
        if not isinstance(event, StreamEndEvent):
            raise self._wrong("a second document begins here; one is read", event, ())
        return Document(self.file, value, self.lines)

    def _wrong(self, message: str, event: Event, path: KeyPath) -> InputError:
        return self.error(message, location=Location(self.file, _line(event), show_path(path) or None))

    def _value(self, event: Event, path: KeyPath) -> Any:
        self.lines.setdefault(path, _line(event))
        if isinstance(event, AliasEvent):
            return self._alias(event, path)
        assert isinstance(event, NodeEvent)
        anchor = event.anchor
        if anchor is not None:
            self.open.add(anchor)
        if len(path) > MAX_DEPTH:
            raise self._wrong(f"nested more than {MAX_DEPTH} deep", event, ())
        if isinstance(event, ScalarEvent):
            value = self._scalar(event, path)
        elif isinstance(event, SequenceStartEvent):
            value = []
            while not isinstance(item := next(self.events), SequenceEndEvent):
                value.append(self._value(item, (*path, len(value))))
        else:
            value = self._mapping(path)
        if anchor is not None:
            self.open.discard(anchor)
            self.anchors[anchor] = value, path
        return value

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        value: dict[str, Any] = {}
        merges = False
        while not isinstance(event := next(self.events), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                raise self._wrong("a key must be text", event, path)
            key: str = event.value
            here = (*path, key)
            if here in self.lines:
                message = f"the key {key!r} was already given in line {self.lines[here]}"
                raise self._wrong(message, event, here)
            self.lines[here] = _line(event)
            value[key] = self._value(next(self.events), here)
            if key == "<<" and event.implicit[0]:
                merges = True
        return self._merged(value, path) if merges else value

    def _merged(self, value: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        """With the keys, where not given, of the mapping after ``<<``, or of several: the first counts."""
        here, given, inherited = (*path, "<<"), value.pop("<<"), dict[str, Any]()
        several = isinstance(given, list)
        for number, other in enumerate(given if several else [given]):
            if not isinstance(other, dict):
                place = Location(self.file, self.lines[here], show_path(path) or None)
                raise self.error("'<<' merges a mapping", location=place)
            for key in [key for key in other if key not in value and key not in inherited]:
                source = (*here, number, key) if several else (*here, key)
                inherited[key] = self._copy(other[key], source, (*path, key))
        return inherited | value

    def _alias(self, event: AliasEvent, path: KeyPath) -> Any:
        if event.anchor in self.open:
            raise self._wrong("this value contains itself", event, path)
        if event.anchor not in self.anchors:
            raise self._wrong(f"this is not YAML: undefined alias {event.anchor!r}", event, path)
        value, source = self.anchors[event.anchor]
        return self._copy(value, source, path)

    def _copy(self, value: Any, source: KeyPath, path: KeyPath) -> Any:
        """A value said at ``source`` also stands at ``path``: a copy, so that a change is of one of them."""
        self.aliased += 1
        if self.aliased > MAX_ALIASED or len(path) > MAX_DEPTH:
            place = Location(self.file, self.lines[source])
            raise self.error("aliases of aliases make more than can be read", location=place)
        self.lines.setdefault(path, self.lines[source])
        if isinstance(value, dict):
            return {key: self._copy(inner, (*source, key), (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._copy(inner, (*source, n), (*path, n)) for n, inner in enumerate(value)]
        return value

    def _scalar(self, event: ScalarEvent, path: KeyPath) -> Any:
        text: str = event.value
        if event.tag is not None and event.tag not in ("!", "tag:yaml.org,2002:str"):
            raise self._wrong(f"the tag {event.tag} is not read; leave it out", event, path)
        if event.style == '"' and (bad := _SURROGATE.search(text)):  # only these can hold one
            raise self._wrong(f"holds the character {bad.group()!r}, half of one", event, path)
        if event.tag is not None or not event.implicit[0]:
            return text
        if self.as_text:
            return None if text in ("", "~", "null") else text
        return plain_scalar(text)


def plain_scalar(text: str) -> Any:
    """What an unquoted scalar means: nothing, a boolean, a number, or the text."""
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.match(text):
        if len(text) < _LONGEST_NUMBER and _INTEGER.match(text):
            return int(text.replace("_", ""))
        if _FLOAT.match(text):
            return float(text.replace("_", ""))
        if _INFINITE.match(text):
            return float(text.replace(".", ""))
        if len(text) < _LONGEST_NUMBER and _BASED.match(text):
            return int(text, 0)
    return text
