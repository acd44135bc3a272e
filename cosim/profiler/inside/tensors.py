"""Tensors made, copied or shared from Python: ``torch.tensor`` of numbers, ``deepcopy``, ``Parameter``."""

from __future__ import annotations

import copyreg
import functools
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.jit._builtins import _register_builtin

from cosim.profiler.inside import host
from cosim.profiler.inside.values import real


def install(mode: FakeTensorMode) -> None:
    """Put them in place of torch's, which look into a tensor's memory."""
    _constructors()
    copyreg.pickle(FakeTensor, _reduced)  # type: ignore[arg-type]
    _copies(mode)
    _parameters(mode)
    _shared()


def _reduced(tensor: FakeTensor) -> Any:
    """Pickled by its values, if they are known, else by its shape; sent to another rank, say."""
    numbers = None if tensor.constant is None else tensor.reshape(-1).tolist()
    return _made_again, (tuple(tensor.shape), tensor.dtype, str(tensor.device), numbers)


def _made_again(shape: tuple[int, ...], dtype: torch.dtype, device: str, numbers: list[Any] | None) -> Any:
    if numbers is None:
        made = torch.empty(shape, dtype=dtype, device=device)
        made.constant = None  # type: ignore[attr-defined]
        return made
    return torch.tensor(numbers, dtype=dtype, device=device).reshape(shape)


def _numbers(data: Any) -> Any:
    """Nested sequences with numbers for the tensors in them."""
    if isinstance(data, FakeTensor):
        return data.tolist()
    if isinstance(data, list | tuple):
        return [_numbers(each) for each in data]
    return data


def _constructors() -> None:
    """``device="cuda"`` is the current one; scalars that are on a GPU are read."""
    for name in ("tensor", "as_tensor"):
        plain = getattr(torch, name)

        def make(data: Any, *args: Any, plain: Any = plain, **given: Any) -> Any:
            if isinstance(data, list | tuple):
                data = _numbers(data)
            given.pop("pin_memory", None)  # all of the host's memory is alike to fake GPUs
            device = given.get("device")
            if device is not None and not isinstance(device, int):
                device = torch.device(device)
                if device.type == "cuda" and device.index is None:
                    given["device"] = torch.device("cuda", torch.cuda.current_device())
            return plain(data, *args, **given)

        made = functools.wraps(plain)(make)
        setattr(torch, name, made)
        _register_builtin(made, f"aten::{name}")  # for TorchScript, which would read its source


def _copies(mode: FakeTensorMode) -> None:
    plain = torch.Tensor.__deepcopy__

    def deepcopy(self: Any, memo: Any) -> Any:
        """A leaf of its own with the same values, if they are known, gradient and attributes."""
        if not isinstance(self, FakeTensor):
            return plain(self, memo)
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user support the deepcopy protocol")
        if id(self) in memo:
            return memo[id(self)]
        with torch.no_grad():
            copied: Any = self.detach().clone()
        made = torch.nn.Parameter(copied, self.requires_grad) if _is_parameter(self) else copied
        made.requires_grad_(self.requires_grad)
        memo[id(self)] = made
        if self.grad is not None:
            made.grad = deepcopy(self.grad, memo)
        return made

    def outside(self: Any, memo: Any) -> Any:
        if type(self) is not torch.Tensor:
            return plain(self, memo)
        with real():  # it has data: ranks of a mesh, say, made outside
            return plain(self, memo)

    FakeTensor.__deepcopy__ = deepcopy  # type: ignore[method-assign]
    torch.Tensor.__deepcopy__ = outside  # type: ignore[method-assign]
    torch.nn.Parameter.__deepcopy__ = (  # type: ignore[method-assign]
        lambda self, memo, before=torch.nn.Parameter.__deepcopy__: (
            deepcopy(self, memo) if isinstance(self, FakeTensor) else before(self, memo)
        )
    )


def _is_parameter(tensor: Any) -> bool:
    return isinstance(tensor, torch.nn.Parameter) or bool(getattr(tensor, "_is_param", False))


def _parameters(mode: FakeTensorMode) -> None:
    """Nobody reads a parameter: that its values are known would cost and change nothing."""
    plain = torch.nn.Parameter.__new__

    def make(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        if isinstance(data, FakeTensor):
            host.forget(mode, data)
        return plain(cls, data, requires_grad)

    torch.nn.Parameter.__new__ = make  # type: ignore[method-assign,assignment]


def _shared() -> None:
    """A rank is one process: memory that others could see is like any other."""
    plain = torch.Tensor.share_memory_

    def share_memory_(self: Any) -> Any:
        return self if isinstance(self, FakeTensor) else plain(self)

    torch.Tensor.share_memory_ = share_memory_  # type: ignore[method-assign]
