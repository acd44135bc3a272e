"""Files of ``safetensors``: read on the host, with their values, whatever device they are asked for.

The library makes tensors of a file's bytes, which a fake tensor hasn't; what it gives is copied there.
None are written, as fake tensors have nothing to write.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any

import torch

from cosim.profiler.inside.values import real


class _Slice:
    """A tensor of a file, of which parts are read."""

    def __init__(self, whole: Any, device: Any) -> None:
        self._whole, self._device = whole, device

    def __getitem__(self, part: Any) -> Any:
        return _placed(self._device, lambda: self._whole[part])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


def _placed(device: Any, read: Any) -> Any:
    with real():
        tensor = read()
    return tensor if torch.device(device).type == "cpu" else tensor.to(device)


def install(assume: Callable[[str], None]) -> None:
    """Put a reader in place of ``safetensors.safe_open``, where that is installed, and write nothing."""
    # transformers reads in threads of its own, which the modes that make tensors fake are not of.
    os.environ["HF_DEACTIVATE_ASYNC_LOAD"] = "1"
    if importlib.util.find_spec("safetensors") is None:
        return
    import safetensors.torch

    from cosim.profiler.inside.distributed import everywhere

    plain: Any = safetensors.safe_open

    class SafeOpen:
        """As ``safe_open``."""

        def __init__(self, filename: Any, framework: Any, device: Any = "cpu", **given: Any) -> None:
            self._file, self._device = plain(filename, framework, device="cpu", **given), device

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *failure: object) -> None:
            self._file.__exit__(*failure)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def get_tensor(self, name: str) -> Any:
            return _placed(self._device, lambda: self._file.get_tensor(name))

        def get_tensors(self) -> dict[str, Any]:
            return {name: self.get_tensor(name) for name in self._file.keys()}  # noqa: SIM118

        def get_slice(self, name: str) -> Any:
            return _Slice(self._file.get_slice(name), self._device)

    everywhere(plain, SafeOpen)

    def written(*_: Any, **__: Any) -> None:
        assume("checkpoints are not written")

    for name in ("save_file", "save_model"):
        everywhere(getattr(safetensors.torch, name), written)
