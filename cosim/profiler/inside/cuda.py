"""``torch.cuda`` for a machine without one: streams and events go to the shim, everything else gets an
answer.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from cosim.profiler.inside import values
from cosim.profiler.inside.gpu_answers import MEMORY, NOTHING, ZERO, about_gpu
from cosim.profiler.inside.shim import Shim


class Stream(torch.Stream):
    """``torch.cuda.Stream``, on the shim."""

    def __new__(cls, device: Any = None, priority: int = 0, **given: Any) -> Any:  # noqa: D102
        if "stream_id" in given:
            return super().__new__(cls, **given)
        index = device if isinstance(device, int) else torch.device(device or "cuda").index
        where = torch.device("cuda", torch.cuda.current_device() if index is None else index)
        return super().__new__(cls, device=where, priority=priority)

    @property
    def cuda_stream(self) -> int:
        """A handle that nobody can use."""
        return int(self.stream_id)

    def is_capturing(self) -> bool:
        """CUDA graphs are never captured."""
        return False

    def record_event(self, event: Any = None) -> Any:
        """As torch's, with events of this module."""
        event = CudaEvent() if event is None else event
        event.record(self)
        return event


class CudaEvent(torch.Event):
    """``torch.cuda.Event``, on the shim; times between events are not known while profiling."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, **_: Any) -> Any:  # noqa: D102
        return super().__new__(cls, device="cuda", enable_timing=enable_timing, blocking=blocking)

    def elapsed_time(self, end_event: Any) -> float:
        """One millisecond, whatever happened."""
        return 1.0


def _stream(identifier: int) -> Any:
    return Stream(stream_id=identifier, device_index=torch.cuda.current_device(), device_type=int(_CUDA_TYPE))


_CUDA_TYPE = 1


def install(shim: Shim, device_count: int, own: int, gpu: dict[str, Any]) -> None:
    """Answer for ``device_count`` devices of which ``own`` is the rank's; ``gpu``: its key, name, memory in
    bytes and multiprocessors.
    """
    shim.open(device_count, own)
    _refuse_others(device_count)
    memory = gpu["memory"] or MEMORY
    answers = {
        # Dynamo tells functions of torch apart by what they are: each has to be one of its own.
        **{name: _copy(_nothing) for name in NOTHING},
        **{name: _copy(_zero) for name in ZERO},
        **about_gpu(gpu, memory),
        **_about_devices(shim, device_count),
    }
    modules = [torch.cuda]
    for name in ("torch.cuda.random", "torch.cuda.memory", "torch.cuda.streams", "torch.cuda._utils"):
        modules += [sys.modules[name]] if name in sys.modules else []
    for key, value in answers.items():
        for module in modules:
            if module is torch.cuda or hasattr(module, key):
                setattr(module, key, value)
    torch.cuda.default_generators = tuple(
        values.Generator(f"cuda:{number}") for number in range(device_count)
    )
    torch.cuda.nvtx.range_push = torch.cuda.nvtx.range_pop = torch.cuda.nvtx.mark = _nothing
    torch.cuda.nccl.version = lambda: (2, 27, 3)
    torch.cuda._get_device_index = lambda device=None, *_, **__: (  # type: ignore[assignment]
        shim.device() if device is None or torch.device(device).index is None else torch.device(device).index
    )
    torch.Tensor.record_stream = _nothing  # type: ignore[method-assign,assignment]
    torch.Tensor.pin_memory = lambda self, *_, **__: self  # type: ignore[method-assign]
    torch.Tensor.is_pinned = lambda self, *_, **__: False  # type: ignore[method-assign]
    accelerator = torch.accelerator
    for key in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        setattr(accelerator, key, _zero)
    for key in ("empty_cache", "reset_peak_memory_stats", "reset_accumulated_memory_stats"):
        setattr(accelerator, key, _nothing)
    torch._C._accelerator_getAllocatorSettings = lambda: ""
    torch._C._accelerator_setAllocatorSettings = _nothing
    accelerator.memory_stats = lambda *_, **__: {}
    accelerator.get_memory_info = lambda *_, **__: (memory, memory)
    # A function of its own: Dynamo takes each of them for another.
    accelerator.current_stream = lambda *_, **__: _stream(shim.stream())


def _refuse_others(device_count: int) -> None:
    """As CUDA does: a device that the node doesn't have."""
    plain = FakeTensor._normalize_fake_device

    def checked(device: torch.device) -> torch.device:
        made = plain(device)
        if made.type == "cuda" and (made.index or 0) >= device_count:
            raise _no_device(made.index, device_count)
        return made

    FakeTensor._normalize_fake_device = staticmethod(checked)  # type: ignore[method-assign]


def _no_device(index: int | None, device_count: int) -> RuntimeError:
    return RuntimeError(f"CUDA error: invalid device ordinal: cuda:{index}, of {device_count} GPUs")


def _nothing(*_: Any, **__: Any) -> None:
    pass


def _copy(function: Any) -> Any:
    return FunctionType(function.__code__, function.__globals__, function.__name__)


def _zero(*_: Any, **__: Any) -> int:
    return 0


def _about_devices(shim: Shim, device_count: int) -> dict[str, Any]:
    """What ``torch.cuda`` says and does about devices and streams."""

    def set_device(device: Any) -> None:
        index = device if isinstance(device, int) else torch.device(device).index
        if index is not None and index >= device_count:
            raise _no_device(index, device_count)
        if index is not None:
            shim.set_device(index)

    class DeviceGuard:
        def __init__(self, device: Any) -> None:
            given = (
                None if device is None else device if isinstance(device, int) else torch.device(device).index
            )
            self.index = given

        def __enter__(self) -> None:
            self.before = shim.device()
            if self.index is not None and self.index >= 0:
                shim.set_device(self.index)

        def __exit__(self, *_: object) -> None:
            shim.set_device(self.before)

    return {
        "is_available": lambda: True,
        "_is_compiled": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: device_count,
        "_device_count_nvml": lambda: device_count,
        "current_device": lambda: int(shim.device()),  # a function of Python's, which Dynamo can hash
        "set_device": set_device,
        "device": DeviceGuard,
        "can_device_access_peer": lambda *_, **__: True,
        "synchronize": lambda *_, **__: torch._C._accelerator_synchronizeDevice(shim.device()),
        "current_stream": lambda *_, **__: _stream(shim.stream()),
        "default_stream": lambda *_, **__: _stream(0),
        "stream": StreamContext,
        "StreamContext": StreamContext,
        "set_stream": lambda stream: torch._C._accelerator_setStream(stream),
        "Stream": Stream,
        "Event": CudaEvent,
    }


class StreamContext:
    """``torch.cuda.stream(...)``: a class, as torch's is."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self.before = torch._C._accelerator_getStream(-1)
        if self.stream is not None:
            torch._C._accelerator_setStream(self.stream)

    def __exit__(self, *_: object) -> None:
        if self.stream is not None:
            torch._C._accelerator_setStream(self.before)
