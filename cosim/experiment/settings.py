"""``--set path=value``: change a scenario from the command line or from Python.

A path has dots and indices, ``jobs[0].iterations`` or ``jobs.0.iterations``; the value is YAML. Keys that are
not there yet are made, and so is the item after a list's last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cosim.errors import Location, ScenarioError
from cosim.files.located_yaml import Document, Key, KeyPath, parse_value, show_path
from cosim.plugin_file import PLUGIN, is_file_class

SHORT_KEYS: dict[Key, str] = {
    "topology": "kind",
    "routing": "kind",
    "network": "model",
    "scale_up": "model",
    "scale_out": "model",
    "workload": "kind",
    "model": "kind",
    "gpu": "kind",
    "host": "kind",
    "framework": "kind",
    "placement": "kind",
    "arrival": "kind",
    "scheduler": "kind",
    "control": "kind",
    "over": "kind",
    "executor": "kind",
    "optimizer": "kind",
}
"""What a lone name stands for: ``network: fair_share`` is ``network: {model: fair_share}``."""

_PART = re.compile(r"\.?([^.\[\]=]+)|\[([0-9]{1,9})\]")
_INDEX = re.compile(r"[0-9]{1,9}")


def parse_path(text: str, setting: str) -> KeyPath:
    """Keys and indices of a path.

    Raises
    ------
    ScenarioError
        Not a path.
    """
    path: list[Key] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or (at == 0 and text.startswith((".", "["))):
            path.clear()
            break
        name, index = match.groups()
        digits = name if index is None else index
        path.append(int(digits) if _INDEX.fullmatch(digits) else digits.strip())
        at = match.end()
    if not path:
        raise ScenarioError(
            f"{text!r} is not a path",
            location=Location(f"--set {setting}"),
            hint="write it as in --set jobs[0].iterations=5",
        )
    return tuple(path)


Changes = Mapping[str, Any] | Iterable[str]
"""``{"jobs[0].iterations": 5}``, or texts as the command line takes them, ``["jobs[0].iterations=5"]``."""


def apply(document: Document, changes: Changes) -> None:
    """Apply changes in order.

    Raises
    ------
    ScenarioError
        A path that can't be followed; of a text: no '=', or a value that is not YAML.
    """
    if isinstance(changes, Mapping):
        for path, value in changes.items():
            setting = f"{path}={value}"
            _put(document, parse_path(path, setting), value, setting)
        return
    for setting in [changes] if isinstance(changes, str) else changes:
        path, equals, text = setting.partition("=")
        if not equals:
            raise ScenarioError(
                "there is no '='",
                location=Location(f"--set {setting}"),
                hint="write it as in --set jobs[0].iterations=5",
            )
        try:
            value = parse_value(text)
        except ScenarioError as error:
            raise ScenarioError(error.message, location=Location(f"--set {setting}")) from None
        _put(document, parse_path(path, setting), value, setting)


def copied(document: Document) -> Document:
    """One that can be changed by itself."""
    from cosim.written import plain

    value = plain(document.value, keep=True)
    return Document(document.file, value, dict(document.lines), dict(document.settings))


def part(document: Document, key: str) -> Document:
    """The value of a key of the document's, with its lines and settings."""
    return Document(
        document.file,
        document.value[key],
        {where[1:]: line for where, line in document.lines.items() if where[:1] == (key,)},
        {where[1:]: text for where, text in document.settings.items() if where[:1] == (key,)},
    )


def _put(document: Document, path: KeyPath, value: Any, setting: str) -> None:
    if document.value is None:
        document.value = {}
    here = document.value
    done: KeyPath = ()
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        child: Any = value if last else [] if isinstance(path[depth + 1], int) else {}
        key: Any = part if isinstance(here, list) else str(part)
        if isinstance(here, list) and (not isinstance(part, int) or part > len(here)):
            raise ScenarioError(
                f"{show_path(done)} is a list of {len(here)}, which has no {part!r}",
                location=Location(f"--set {setting}"),
                hint=f"its items are {', '.join(f'[{n}]' for n in range(min(len(here), 4) + 1))} ...",
            )
        done = (*done, key)
        if isinstance(here, list) and key == len(here):
            here.append(child)
        elif last or (isinstance(here, dict) and key not in here):
            here[key] = child
        elif not isinstance(here[key], dict | list):
            here[key] = _expand(document, done, here[key], child, setting)
        here = here[key]
    for known in [k for k in document.lines if k[: len(done)] == done]:
        del document.lines[known]
    for known in [k for k in document.settings if k[: len(done)] == done]:
        del document.settings[known]
    document.settings[done] = setting


def _expand(document: Document, path: KeyPath, old: Any, child: Any, setting: str) -> Any:
    """A name given short, ``network: fair_share``, becomes a mapping when a key of it is set."""
    short = "algorithm" if path[0] == "collectives" else SHORT_KEYS.get(path[-1])
    if isinstance(old, str) and isinstance(child, dict) and short:
        return {PLUGIN if is_file_class(old) else short: old}
    if old is None:
        return child
    raise ScenarioError(
        f"{show_path(path)} is {old!r} in {document.file}; it has no keys to set",
        location=Location(f"--set {setting}"),
    )
