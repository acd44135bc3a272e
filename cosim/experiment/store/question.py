"""What determines a run, as one hash; but for the files that it reads, which are known when it has run."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from cosim.errors import InputError
from cosim.experiment.scenario import Scenario
from cosim.experiment.store.closed import check_closed
from cosim.experiment.store.version import tree_files, version
from cosim.files.reads import PLUGINS, state
from cosim.plugin_file import source_of

_SAYS_NOTHING = ("name", "description")
"""Keys of a scenario that change no result."""


@dataclass(frozen=True)
class Question:
    """What a run answers: its hash, the scenario as plain values, and where its files lie."""

    key: str
    settings: dict[str, Any]
    version: str
    base: Path

    def narrowed(
        self, job: int | None, read: Callable[..., Any] | None, arguments: Sequence[Any]
    ) -> Question:
        """The question that asks for one job by itself, or for what one of cosim's functions reads.

        Raises
        ------
        InputError
            The function is a plug-in's, whose source the hash doesn't know.
        """
        name = ""
        if read is not None:
            name = f"{read.__module__}.{read.__qualname__}"
            if not name.startswith("cosim."):
                raise InputError(f"{name} is no function of cosim's: what it reads of a run is not stored")
        said = [question_of(one).key if isinstance(one, Scenario) else one for one in arguments]
        whole = json.dumps([self.key, job, name, said], sort_keys=True)
        return replace(self, key=_key(whole))


def question_of(scenario: Scenario) -> Question:
    """The question that a scenario asks.

    Raises
    ------
    InputError
        It can't be said: an object that only Python can make, a simulator of which only the address or the
        command is known, a plug-in that may read what is not seen.
    """
    build = scenario.network.simulator_build()
    if build is None:
        raise InputError(
            "which simulator answers at an address is not known, nor what a command's reads: "
            "runs over one are not stored"
        )
    settings = scenario.as_written()
    text = json.dumps(settings, sort_keys=True, ensure_ascii=False, default=_plain)
    values = {key: value for key, value in json.loads(text).items() if key not in _SAYS_NOTHING}
    whole = json.dumps([version(), build, sorted(_sources(scenario)), values], sort_keys=True)
    return Question(_key(whole), values, version(), scenario.base)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _plain(value: object) -> str:
    if isinstance(value, datetime.date | Path):
        return str(value)
    raise InputError(f"a {type(value).__name__} made in Python can't be said in a store")


def _sources(value: object) -> set[str]:
    """Hashes of the sources of every class in a scenario that isn't cosim's own."""
    return {_source(kind) for kind in {*_kinds(value)} if kind.__module__.partition(".")[0] != "cosim"}


def _kinds(value: object) -> Iterator[type]:
    if isinstance(value, BaseModel):
        yield type(value)
        for name in type(value).model_fields:
            yield from _kinds(getattr(value, name))
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _kinds(one)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for one in value:
            yield from _kinds(one)


def _source(kind: type) -> str:
    """A hash of the file of a class, those beside it that it imports and what it read when it was loaded, or
    of the package it comes in.

    Raises
    ------
    InputError
        It may read what is not seen.
    """
    if (source := source_of(kind)) is not None:
        declared: tuple[str, ...] | None = getattr(kind, "declared_inputs", None)
        if declared is None:
            check_closed(source.contents)
            if source.unclear:
                raise InputError(f"{kind.__qualname__} {source.unclear}")
        parts = [hashlib.sha256(text).hexdigest() for _, text in sorted(source.contents.items())]
        folder = next(iter(source.contents)).parent
        parts += [f"{path}={state(folder / path)}" for path in declared or ()]
        parts += [f"{path}={known}" for path, known in sorted(source.read.items())]
        return f"{kind.__qualname__} {' '.join(parts)}"
    top = kind.__module__.partition(".")[0]
    place = getattr(sys.modules.get(top), "__file__", None)
    if place is None:
        raise InputError(f"{kind.__module__}.{kind.__qualname__} has no source that a hash could stand for")
    file = Path(place)
    return f"{top} {_package(file.parent if file.name == '__init__.py' else file)}"


@cache
def _package(place: Path) -> str:
    PLUGINS.add(f"{place}{os.sep}" if place.is_dir() else str(place))
    files = sorted(tree_files(place)) if place.is_dir() else [place]
    contents = {path: path.read_bytes() for path in files}
    check_closed({path: text for path, text in contents.items() if path.suffix in (".py", ".c")})
    whole = hashlib.sha256()
    for path, text in contents.items():
        whole.update(f"{path.relative_to(place)}\0".encode() + text + b"\0")
    return whole.hexdigest()[:12]
