"""``triton`` where it isn't installed (it comes with CUDA builds of torch): scripts import it, and launch.

What is imported from it is there, whatever its name. A launch ``kernel[grid](tensors, numbers)`` is recorded
as an operator ``triton.NAME`` without a FLOP formula: every tensor that it is given is taken to be moved
once. Where triton is installed, launches are caught in the same way.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any


class Launcher:
    """A decorated kernel: indexed with a grid and called, or run with one."""

    def __init__(self, function: Any, launched: Callable[[str, list[Any]], None]) -> None:
        self.fn, self.launched = function, launched
        self.__name__ = getattr(function, "__name__", "kernel")
        self.__doc__ = getattr(function, "__doc__", None)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return self.run

    def run(self, *args: Any, **given: Any) -> None:
        """Record the launch."""
        self.launched(self.__name__, [*args, *given.values()])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(f"{self.__name__}.{name}")


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
    def __init__(self, launched: Callable[[str, list[Any]], None]) -> None:
        self.launched = launched

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if name != "triton" and not name.startswith("triton."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ != "triton":
            return
        launched = self.launched

        def jit(function: Any = None, **_: Any) -> Any:
            return jit if function is None else Launcher(function, launched)

        own: dict[str, Any] = {
            "__version__": "3.5.0",
            "jit": jit,
            "autotune": lambda *_, **__: lambda kernel: kernel,
            "heuristics": lambda *_, **__: lambda kernel: kernel,
            "cdiv": lambda a, b: -(-a // b),
            "next_power_of_2": lambda n: 1 << max(0, n - 1).bit_length(),
        }
        for name, value in own.items():
            setattr(module, name, value)


def install(launched: Callable[[str, list[Any]], None]) -> None:
    """Be ``triton``, or catch its launches. ``launched(name, arguments)`` records one."""
    if importlib.util.find_spec("triton") is None:
        sys.meta_path.append(_Finder(launched))
        return

    def run(self: Any, *args: Any, **given: Any) -> None:
        launched(self.fn.__name__, [*args, *given.values()])

    import_module("triton.runtime.jit").JITFunction.run = run
    tuned = import_module("triton.runtime.autotuner")
    for chooser in (tuned.Autotuner, tuned.Heuristics):
        chooser.run = lambda self, *args, **given: self.fn.run(*args, **given)
