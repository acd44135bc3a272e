"""What only CUDA builds have: ``torch.cuda.FloatTensor`` and its like, ``_compile_kernel``, ``CUDA_HOME``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_TYPES = {
    "FloatTensor": torch.float32, "DoubleTensor": torch.float64, "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16, "ByteTensor": torch.uint8, "CharTensor": torch.int8,
    "ShortTensor": torch.int16, "IntTensor": torch.int32, "LongTensor": torch.int64, "BoolTensor": torch.bool,
}  # fmt: skip


class _TensorType(type):
    """Called with sizes or with data, it makes a tensor on the current device; instances are of its dtype."""

    kind: torch.dtype

    def __call__(cls, *given: Any) -> Any:
        device = torch.device("cuda", torch.cuda.current_device())
        if not given:
            return torch.empty(0, dtype=cls.kind, device=device)
        if len(given) > 1 or isinstance(given[0], int | torch.Size):
            return torch.empty(*given, dtype=cls.kind, device=device)
        return torch.tensor(given[0], dtype=cls.kind, device=device)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.is_cuda and value.dtype is cls.kind


def install(launched: Callable[[str, list[Any]], None]) -> None:
    """Put them up. ``launched(name, arguments)`` records a kernel that NVRTC would have compiled."""
    for name, kind in _TYPES.items():
        # Tensor.type() goes by the type's name.
        setattr(torch.cuda, name, _TensorType(f"torch.cuda.{name}", (), {"kind": kind}))

    def compile_kernel(source: str, kernel_name: str, *_: Any, **__: Any) -> Callable[..., None]:
        def launch(
            grid: Any = (1, 1, 1), block: Any = (1, 1, 1), args: Any = None, *_: Any, **__: Any
        ) -> None:
            launched(kernel_name, list(args or ()))

        return launch

    torch.cuda._compile_kernel = compile_kernel  # type: ignore[assignment]
    import torch.utils.cpp_extension as extension

    extension.CUDA_HOME = extension.CUDA_HOME or "/usr/local/cuda"
