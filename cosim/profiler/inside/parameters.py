"""A module's parameters keep what a script wrote on them when they are cast or moved."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor


def install() -> None:
    """``Module.to`` and its like give a parameter other data; a fake one they swap for another, without its
    attributes, by which Megatron-LM knows which gradients are an expert's. From or to ``meta`` torch makes a
    new parameter, here as on a GPU.
    """
    plain = torch.nn.Module._apply

    def apply(self: Any, *args: Any, **given: Any) -> Any:
        fake = [each for each in self._parameters.values() if isinstance(each, FakeTensor)]
        before = [(each, dict(vars(each)), each.device.type == "meta") for each in fake]
        done = plain(self, *args, **given)
        for parameter, written, meta in before:
            if meta == (parameter.device.type == "meta"):
                for name, value in written.items():
                    vars(parameter).setdefault(name, value)
        return done

    torch.nn.Module._apply = apply  # type: ignore[method-assign]
