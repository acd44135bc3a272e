"""A package's compiled part that isn't there, or can't be loaded without CUDA: ``vllm._C`` and its like.

Such a part registers operators in torch, from C++. Where it is missing, it can be imported nevertheless,
and whatever is asked for in the namespaces that it would have (``_C``, ``_C_cache_ops``) is an operator: of
those whose work is known (:mod:`.serving_kernels`) by what they do, of others by their tensors, each moved
once. They return what a fake implementation says that was registered from Python, else nothing.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import re
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
import torch.library

Carry = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]
"""Carries an operator out: its name, its arguments; what it returns."""

_COMPILED = re.compile(r"(_C|_moe_C|_vllm_fa[23]_C)(?:_\w+)?")
"""Parts of which operators are known; ``_C_stable_libtorch`` is one. Others are left missing: a package that
can do without them does.
"""


class _CompiledParts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds compiled parts, and is a stand-in for those that aren't there or don't load."""

    def __init__(self) -> None:
        self.stems: set[str] = set()
        self.loaders: dict[str, Any] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        found = _COMPILED.fullmatch(name.rpartition(".")[2])
        if found is None or path is None or name.startswith("torch."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and not isinstance(spec.loader, importlib.machinery.ExtensionFileLoader):
            return None
        if spec is not None:
            self.loaders[name] = spec.loader
        return importlib.machinery.ModuleSpec(name, self, origin=spec.origin if spec else None)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        loader = self.loaders.get(spec.name)
        try:
            if loader is not None:
                return loader.create_module(spec)  # type: ignore[no-any-return]
        except ImportError:  # a library of CUDA's that isn't here
            del self.loaders[spec.name]
        found = _COMPILED.fullmatch(spec.name.rpartition(".")[2])
        assert found is not None
        self.stems.add(found[1])
        return None

    def exec_module(self, module: ModuleType) -> None:
        loader = self.loaders.get(module.__name__)
        if loader is not None:
            loader.exec_module(module)

    def registers(self, space: str) -> bool:
        """Whether a namespace's operators would be those of a part that is missing."""
        return any(space == stem or space.startswith(f"{stem}_") for stem in self.stems)


class _Operator:
    """An operator of a compiled part that isn't there."""

    def __init__(self, space: str, name: str, carry: Carry) -> None:
        self.space, self.name, self.carry = space, name, carry
        self.__name__ = name
        self.default = self
        self.fake: Callable[..., Any] | None = None

    def __getattr__(self, overload: str) -> Any:
        raise AttributeError(
            f"{self.space}::{self.name} has no {overload} here: the compiled part that has it isn't installed"
        )

    def __call__(self, *given: Any, **named: Any) -> Any:
        returned = self.carry(f"{self.space}.{self.name}", given, named)
        if returned is not None:
            return returned
        return None if self.fake is None else self.fake(*given, **named)


def install(carry: Carry) -> None:
    """Let compiled parts be missing. ``carry``: what their operators do."""
    parts = _CompiledParts()
    sys.meta_path.insert(0, parts)
    spaces: Any = torch._ops._OpNamespace
    plain = spaces.__getattr__

    def asked(space: Any, name: str) -> Any:
        try:
            return plain(space, name)
        except AttributeError:
            if name.startswith("__") or not parts.registers(space.name):
                raise
            made = _Operator(space.name, name, carry)
            setattr(space, name, made)
            return made

    spaces.__getattr__ = asked
    _take_fakes(carry)


def _take_fakes(carry: Carry) -> None:
    """``register_fake`` of an operator that isn't there: what it returns is known from now on."""
    register = torch.library.register_fake

    def registered(op: Any, func: Any = None, /, **more: Any) -> Any:
        space, _, name = op.partition("::") if isinstance(op, str) else ("", "", "")
        made = _made(getattr(torch.ops, space), name.partition(".")[0], carry) if name else None
        if not isinstance(made, _Operator):  # torch asks whose module registers: not this one
            return register(op, func, **{**more, "_stacklevel": more.get("_stacklevel", 1) + 1})

        def keep(fake: Any) -> Any:
            made.fake = fake
            return fake

        return keep if func is None else keep(func)

    torch.library.register_fake = registered


def _made(space: Any, name: str, carry: Carry) -> Any:
    """An operator, made if there is none."""
    try:
        return getattr(space, name)
    except AttributeError:
        made = _Operator(space.name, name, carry)
        setattr(space, name, made)
        return made
