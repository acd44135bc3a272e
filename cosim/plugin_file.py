"""Plug-ins from a file: ``{plugin: my.py:MyClass, its settings}``, or ``my.py:MyClass`` alone.

The file is looked for beside the scenario, run once, and run again when it has changed. What it defines is
found again in other processes by file and name, so that a sweep may hand it to its workers.
"""

from __future__ import annotations

import copyreg
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from cosim.errors import InputError, Location

PLUGIN = "plugin"
"""The key that says where a plug-in is."""

_FOUND: dict[type, str] = {}
"""Classes that were found in files, and how a scenario names them wherever it lies."""


def is_file_class(text: str) -> bool:
    """Whether ``text`` is FILE.py:CLASS."""
    file, colon, name = text.rpartition(":")
    return bool(colon) and file.endswith(".py") and name.isidentifier()


def named_in_file(kind: type) -> str | None:
    """``/path/my.py:MyClass`` of a class that was found in a file."""
    return _FOUND.get(kind)


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
    if not path.is_file():
        raise ValueError(f"there is no file {path}\n  plugin: FILE.py:CLASS, relative to the scenario")
    return _run(str(path.resolve()), hashlib.sha256(path.read_bytes()).hexdigest()), name, path


@lru_cache(maxsize=64)
def _run(path: str, digest: str) -> ModuleType:
    name = f"cosim_plugin_{hashlib.sha256(f'{path} {digest}'.encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = getattr(error, "lineno", None) or _line(error, path)
        place = path if line is None else f"{path}:{line}"
        raise ValueError(f"{place}: can't be imported: {type(error).__name__}: {error}") from error
    for key, value in vars(module).items():
        if isinstance(value, type) and value.__module__ == name:
            _FOUND[value] = f"{path}:{key}"
            if issubclass(value, BaseModel):
                copyreg.pickle(value, _reduce)
    return module


@contextmanager
def exits_refused() -> Iterator[None]:
    """Where code of a plug-in runs: ``sys.exit`` in it would end everything, and with 0 without a word.

    The script that calls cosim may end itself, in a signal's handler for instance.

    Raises
    ------
    InputError
        Instead of SystemExit; says where it was called.
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
