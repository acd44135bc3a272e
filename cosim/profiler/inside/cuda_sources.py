"""Extensions with CUDA sources, which a script compiles when it first needs them (``cpp_extension.load``).

There is no ``nvcc`` to compile them with, and nothing to run them on: an extension stands for itself. A call
of one of its functions is recorded as an operator ``extension.NAME.FUNCTION`` without a FLOP formula, every
tensor that it is given being taken to be moved once. What it gives back isn't known. Extensions in C++ alone
are compiled and run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

_CUDA = (".cu", ".cuh")


class UnknownResult:
    """What a function of an extension gave back: nobody may look at it."""

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def _refuse(self, *_: Any) -> Any:
        name = object.__getattribute__(self, "_name")
        raise NotImplementedError(
            f"the result of {name} isn't known: its source is CUDA, which is neither compiled nor run here;"
            " have the script take torch's own operators"
        )

    __getattr__ = __iter__ = __bool__ = __getitem__ = __len__ = __float__ = __int__ = _refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __truediv__ = _refuse


class StandInExtension(ModuleType):
    """Has a function of whatever name."""

    def __init__(self, name: str, launched: Callable[..., None]) -> None:
        super().__init__(name)
        self._launched = launched

    def __getattr__(self, function: str) -> Callable[..., Any]:
        if function.startswith("__"):
            raise AttributeError(function)
        name = f"{self.__name__}.{function}"

        def call(*args: Any, **given: Any) -> Any:
            self._launched(name, [*args, *given.values()], source="extension")
            return UnknownResult(name)

        return call


def install(launched: Callable[..., None]) -> None:
    """Stand for what ``load`` and ``load_inline`` would compile. ``launched`` records a call."""
    import torch.utils.cpp_extension as extension

    load, load_inline = extension.load, extension.load_inline

    def load_(name: str, sources: Any, *args: Any, **given: Any) -> Any:
        paths = [sources] if isinstance(sources, str) else list(sources)
        if given.get("with_cuda") or any(str(path).endswith(_CUDA) for path in paths):
            return StandInExtension(name, launched)
        return load(name, sources, *args, **given)

    def load_inline_(name: str, cpp_sources: Any, cuda_sources: Any = None, *args: Any, **given: Any) -> Any:
        if given.get("with_cuda") or cuda_sources:
            return StandInExtension(name, launched)
        return load_inline(name, cpp_sources, cuda_sources, *args, **given)

    extension.load, extension.load_inline = load_, load_inline_
