"""Libraries that need CUDA to be installed at all: scripts import them, and what is imported is there.

A stand-in has what it is given under its modules' names; whatever else is asked for stands for itself.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any


class Anything:
    """Stands for whatever a module has: called, indexed or asked for more, it gives more of the same."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _part(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **_: Any) -> Any:
        """Itself; a decorator gives back what it is put on."""
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __getitem__(self, _: Any) -> Any:
        return self

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        return (object,)

    def __or__(self, _: Any) -> Any:
        return self

    __ror__ = __or__


@cache
def _part(name: str) -> Any:
    """What a module has under a name; for `except`, a class."""
    if name.endswith(("Error", "OutOfResources")):
        return type(name.rpartition(".")[2], (Exception,), {})
    return Anything(name)


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _part(f"{self.__name__}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, library: str, own: Mapping[str, Mapping[str, Any]]) -> None:
        self.library, self.own = library, own

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if name != self.library and not name.startswith(f"{self.library}."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        for name, value in self.own.get(module.__name__, {}).items():
            setattr(module, name, value)


def install(library: str, own: Mapping[str, Mapping[str, Any]]) -> bool:
    """Be ``library`` where it isn't installed; ``own``: what its modules have. False where it is."""
    found = importlib.util.find_spec(library)
    if found is not None and found.origin is not None:  # else a folder of that name, where the script lies
        return False
    sys.meta_path.insert(0, _Finder(library, own))
    return True
