"""Without the shim: what a script asks of ``cuda`` happens on fake ``cpu`` tensors. A fallback; see
``session``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


def _cpu(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


class Remap(TorchFunctionMode):
    """Reads every ``cuda`` among the arguments as ``cpu``."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The same call on the host's device."""
        del types
        if func is torch.device:  # scripts ask whether theirs is a GPU
            return func(*args, **(kwargs or {}))
        if func is torch.Tensor.to and len(args) > 1 and type(args[1]) is int:  # a GPU's number
            args = (args[0], "cpu", *args[2:])
        given = {key: _cpu(value) for key, value in (kwargs or {}).items()}
        if type(given.get("device")) is int:
            given["device"] = "cpu"
        return func(*(_cpu(each) for each in args), **given)


def install() -> None:
    """Say that there is a GPU, and put everything for it on the host."""
    cuda = torch.cuda
    for name, value in {
        "is_available": lambda: True,
        "device_count": lambda: 8,
        "current_device": lambda: 0,
        "set_device": lambda *_: None,
        "synchronize": lambda *_, **__: None,
        "manual_seed": lambda *_: None,
        "manual_seed_all": lambda *_: None,
        "empty_cache": lambda: None,
        "is_bf16_supported": lambda *_, **__: True,
        "memory_allocated": lambda *_, **__: 0,
        "max_memory_allocated": lambda *_, **__: 0,
    }.items():
        setattr(cuda, name, value)
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]
    torch.nn.Module.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]
    module_to = torch.nn.Module.to

    def to(self: Any, *args: Any, **given: Any) -> Any:
        args = tuple("cpu" if type(a) is int else _cpu(a) for a in args)
        return module_to(self, *args, **{k: _cpu(v) for k, v in given.items()})

    torch.nn.Module.to = to  # type: ignore[method-assign]
    autocast = torch.autocast.__init__

    def on_host(self: Any, device_type: str, *args: Any, **given: Any) -> None:
        autocast(self, _cpu(device_type), *args, **given)

    torch.autocast.__init__ = on_host  # type: ignore[method-assign]
    made = torch.nn.parallel.DistributedDataParallel.__init__

    def init(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, **given: Any) -> None:
        del device_ids, output_device
        made(self, module, **given)

    torch.nn.parallel.DistributedDataParallel.__init__ = init  # type: ignore[method-assign]
    Remap().__enter__()
