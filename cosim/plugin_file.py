"""Plug-ins from a file: ``{plugin: my.py:MyClass, its settings}``, or ``my.py:MyClass`` alone.

The file is looked for beside the scenario, run once, and run again when it has changed, or the C file that
one of its classes has for ``kernel``. It may import files beside it, at its top: each plug-in has its own,
whatever others of that name are about. What it defines is found again in other processes by file and name, so
that a sweep may hand it to its workers.
"""

from __future__ import annotations

import copyreg
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticUserError

from cosim.errors import CosimError, InputError, Location, SimulationError
from cosim.files.trust import check_file

_LONGEST_NAME = 255
"""Bytes of a file's name (Linux, macOS): asking for a longer one is an error of the system's."""

PLUGIN = "plugin"
"""The key that says where a plug-in is."""

_FOUND: dict[type, str] = {}
"""Classes that were found in files, and how a scenario names them wherever it lies."""


@dataclass(frozen=True)
class PluginSource:
    """What a plug-in from a file was made of when it was loaded.

    Attributes
    ----------
    contents
        Its file, and those beside it that it imports.
    read
        State of what else it read, by path.
    unclear
        Why that can't be said; empty where it can.
    """

    contents: Mapping[Path, bytes]
    read: Mapping[str, str]
    unclear: str


@dataclass(frozen=True)
class _LoadedFile:
    """A file that was run."""

    module: ModuleType
    source: PluginSource

    def is_current(self) -> bool:
        from cosim.files.reads import are_current

        return all(
            path.is_file() and path.read_bytes() == text for path, text in self.source.contents.items()
        ) and are_current(self.source.read, Path(str(self.module.__file__)).parent)


_RUNS: dict[Path, _LoadedFile] = {}


def is_file_class(text: str) -> bool:
    """Whether ``text`` is FILE.py:CLASS."""
    file, colon, name = text.rpartition(":")
    return bool(colon) and file.endswith(".py") and name.isidentifier()


def named_in_file(kind: type) -> str | None:
    """``/path/my.py:MyClass`` of a class that was found in a file."""
    return _FOUND.get(kind)


def source_of(kind: type) -> PluginSource | None:
    """The source of a class that was found in a file; None for any other class."""
    if kind not in _FOUND:
        return None
    return _RUNS[Path(_FOUND[kind].rpartition(":")[0])].source


def load_module(text: str, folder: Path) -> tuple[ModuleType, str, Path]:
    """The module that FILE.py:CLASS names, the name of the class, and the file.

    Raises
    ------
    ValueError
        It is not FILE.py:CLASS, there is no such file, or it can't be run: names file and line.
    """
    if not is_file_class(text):
        raise ValueError(f"{text!r} is not FILE.py:CLASS, as in my_plugin.py:MyClass")
    file, _, name = text.rpartition(":")
    path = folder / file
    if len(path.name.encode()) > _LONGEST_NAME or not path.is_file():
        raise ValueError(f"there is no file {path}\n  plugin: FILE.py:CLASS, relative to the scenario")
    place = path.resolve()
    if place not in _RUNS or not _RUNS[place].is_current():
        check_file(place)
        _RUNS[place] = _run(place)
    return _RUNS[place].module, name, path


def _run(place: Path) -> _LoadedFile:
    from cosim.files.reads import PLUGINS, reading

    path, text = str(place), place.read_bytes()
    name = f"cosim_plugin_{hashlib.sha256(path.encode() + text).hexdigest()[:12]}"
    loader = _FromSource(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    PLUGINS.add(path)
    try:
        with reading() as reads, _importing_from(place.parent) as beside:
            loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = getattr(error, "lineno", None) or _line(error, path)
        where = path if line is None else f"{path}:{line}"
        raise ValueError(f"{where}: can't be imported: {_said(error)}") from error
    own = {name, *(one.__name__ for one in beside)}
    compiled: set[Path] = set()
    named = vars(module).items()
    kinds = {key: one for key, one in named if isinstance(one, type) and one.__module__ in own}
    for key, kind in kinds.items():
        _FOUND[kind] = f"{path}:{key}"
        if issubclass(kind, BaseModel):
            copyreg.pickle(kind, _reduce)
        compiled |= _compiled_parts(kind, place.parent)
    files = [Path(one.__file__) for one in beside if one.__file__ is not None]
    files += sorted(compiled)
    contents = {place: text} | {file: file.read_bytes() for file in files}
    if any(getattr(kind, "declared_inputs", None) is not None for kind in kinds.values()):
        PLUGINS.discard(path)  # what it does to files is its author's word
    else:
        PLUGINS.update(map(str, contents))
    reads.own.update(map(str, contents))
    return _LoadedFile(module, PluginSource(contents, reads.states(place.parent), reads.unclear))


def _compiled_parts(kind: type, folder: Path) -> set[Path]:
    """The C file of a control or a balancer, if its class names one that is there."""
    kernel: Any = getattr(kind, "kernel", None)
    named = kernel[0] if isinstance(kernel, tuple) and kernel else kernel
    if not isinstance(named, str) or not named.endswith(".c") or not (folder / named).is_file():
        return set()
    return {folder / named}


class _FromSource(SourceFileLoader):
    """Compiles a module each time: an edit within the clock's tick would be taken for what was compiled."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Nothing by which compiled code could be known again."""
        raise OSError(path)


@contextmanager
def _importing_from(folder: Path) -> Iterator[list[ModuleType]]:
    """Files of ``folder`` can be imported inside; afterwards they are in the list, and their names are free.

    One that this process had imported before stays as it is.
    """
    beside: list[ModuleType] = []
    before = set(sys.modules)
    finders = FileFinder.path_hook((ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromSource, SOURCE_SUFFIXES))

    def hook(path: str) -> Any:
        place = Path(path)
        inner = place.relative_to(folder).parts if place.is_relative_to(folder) else None
        # Packages that are there already, or of an environment that lies in the folder, are no part of it.
        if inner is None or "site-packages" in inner or (inner and inner[0] in before):
            raise ImportError(path)
        return finders(path)

    _forget_finders(folder)
    sys.path_hooks.insert(0, hook)
    sys.path.insert(0, str(folder))
    try:
        yield beside
    finally:
        sys.path.remove(str(folder))
        sys.path_hooks.remove(hook)
        _forget_finders(folder)
        tops = {name for name in set(sys.modules) - before if _lies_in(folder, name)}
        beside += [sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in tops]


def _forget_finders(folder: Path) -> None:
    for path in [path for path in sys.path_importer_cache if Path(path).is_relative_to(folder)]:
        del sys.path_importer_cache[path]


def _lies_in(folder: Path, name: str) -> bool:
    """Whether a module or package of this name is one of the folder's own files."""
    file = getattr(sys.modules[name], "__file__", None)
    return file is not None and Path(file) in (folder / f"{name}.py", folder / name / "__init__.py")


@contextmanager
def plugin_errors() -> Iterator[None]:
    """Where code of a plug-in runs: what it does wrong is said in a line that names its own.

    ``sys.exit`` in it would end everything, and with 0 without a word; the script that calls cosim may end
    itself, in a signal's handler for instance. What it makes with settings that can't be (``Gpu(...)``) is
    refused as a scenario's settings are. What else is raised in a plug-in's file, or by what it called, is an
    error of the input, too.

    Raises
    ------
    InputError
        Instead of such an error.
    """
    try:
        yield
    except SystemExit as error:
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__") == "__main__":
            raise
        code = "" if error.code is None else repr(error.code)
        raise InputError(
            f"calls sys.exit({code}), which would end cosim",
            location=Location(frame.f_code.co_filename, line, frame.f_code.co_name),
            hint="a plug-in raises an error instead",
        ) from None
    except CosimError:
        raise
    except Exception as error:
        if isinstance(error, ValidationError) and (refusal := _refusal(error)) is not None:
            raise refusal from error
        files = {str(path) for run in _RUNS.values() for path in run.source.contents}
        for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
            if frame.f_code.co_filename in files:
                place = Location(frame.f_code.co_filename, line, frame.f_code.co_name)
                raise InputError(f"{type(error).__name__}: {error}", location=place) from error
        raise


@contextmanager
def at(place: Location | None, *only: type[CosimError]) -> Iterator[None]:
    """Give an error (of ``only`` these classes, where given) the place in the scenario that led to it."""
    try:
        with plugin_errors():
            yield
    except InputError as error:
        if place is None or (only and not isinstance(error, only)):
            raise
        if error.location is not None:
            within = str(error.location) if place.key is None else f"{place.key}: {error.location}"
            place = Location(place.file, place.line, within)
        raise type(error)(error.message, location=place, hint=error.hint) from error
    except SimulationError as error:
        if place is not None and not only:
            error.args = (f"{place}: {error}",)
        raise


def _refusal(error: ValidationError) -> InputError | None:
    """What a plug-in's own line asked pydantic for and didn't get; None where it was not a plug-in."""
    frame, line = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not _is_of(frame, "pydantic")
    ][-1]
    if _is_of(frame, "cosim") or frame.f_globals.get("__name__") == "__main__":
        return None
    wrong = error.errors(include_url=False)[0]
    field = ".".join(map(str, wrong["loc"]))
    return InputError(
        f"{error.title}({field}=...): {wrong['msg'].removeprefix('Value error, ')}",
        location=Location(frame.f_code.co_filename, line, frame.f_code.co_name),
    )


def _is_of(frame: FrameType, package: str) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == package


def _said(error: BaseException) -> str:
    """Kind and text of an error; pydantic's without the address of its manual, and in our words."""
    if isinstance(error, PydanticUserError) and error.code == "model-field-missing-annotation":
        found = error.message.partition("`")[2].partition("`")[0]
        name, _, value = found.partition(" = ")
        kind = "bool" if value in ("True", "False") else "float"
        return f"{found} has no type: {name}: {kind} = {value} is a setting, {name}: ClassVar[{kind}] is none"
    text = error.message if isinstance(error, PydanticUserError) else error
    return f"{type(error).__name__}: {text}"


def _line(error: BaseException, path: str) -> int | None:
    """The last line of the file that was being run."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _reduce(made: BaseModel) -> tuple[Any, ...]:
    return _revive, (_FOUND[type(made)], made.__getstate__())


def _revive(text: str, state: dict[Any, Any]) -> Any:
    module, name, _ = load_module(text, Path())
    made = object.__new__(getattr(module, name))
    made.__setstate__(state)
    return made
