"""``triton`` where it isn't installed (it comes with CUDA builds of torch): scripts import it, and launch.

What is imported from it is there, whatever its name. A launch ``kernel[grid](tensors, numbers)`` is recorded
as an operator ``triton.NAME`` without a FLOP formula: every tensor that it is given is taken to be moved
once. Where triton is installed, launches are caught in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from cosim.profiler.inside import stand_in


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
        return stand_in.Anything(f"{self.__name__}.{name}")


def install(launched: Callable[[str, list[Any]], None]) -> None:
    """Be ``triton``, or catch its launches. ``launched(name, arguments)`` records one."""

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
    if stand_in.install("triton", {"triton": own}):
        return

    def run(self: Any, *args: Any, **given: Any) -> None:
        launched(self.fn.__name__, [*args, *given.values()])

    import_module("triton.runtime.jit").JITFunction.run = run
    tuned = import_module("triton.runtime.autotuner")
    for chooser in (tuned.Autotuner, tuned.Heuristics):
        chooser.run = lambda self, *args, **given: self.fn.run(*args, **given)
