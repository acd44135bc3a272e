"""Operators that a library implements in Python (``torch.library``): what they call is what is recorded.

torch would ask an operator's fake implementation for its result alone. Its implementation for a GPU, where
it is Python's, is carried out instead, and the operators and kernels in it are seen. One that can't be (it
calls into a library of its own) is left to its fake one: a kernel of that name, by its bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.library

_KEYS = ("CUDA", "CompositeExplicitAutograd")
_found: dict[str, dict[str, Callable[..., Any]]] = {}


def install() -> None:
    """Remember what is registered from now on."""
    plain = torch.library.Library.impl

    @functools.wraps(plain)
    def impl(library: Any, op_name: Any, fn: Any, dispatch_key: str = "", *given: Any, **named: Any) -> Any:
        if dispatch_key in _KEYS and callable(fn):
            name = op_name._name if isinstance(op_name, torch._ops.OpOverload) else str(op_name)
            whole = name if "::" in name else f"{library.ns}::{name}"
            _found.setdefault(whole, {})[dispatch_key] = fn
        return plain(library, op_name, fn, dispatch_key, *given, **named)

    torch.library.Library.impl = impl  # type: ignore[method-assign]


def implementation(func: Any) -> Callable[..., Any] | None:
    """What an operator does on a GPU, if that is Python's."""
    kept = _found.get(func.name()) or _found.get(func._schema.name) or {}
    return next((kept[key] for key in _KEYS if key in kept), None)
