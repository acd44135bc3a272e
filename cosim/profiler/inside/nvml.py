"""NVIDIA's management library: what asks it for the node's GPUs sees those of the profile.

Python's wrappers of it (``pynvml``, and the copies that libraries bring along) load ``libnvidia-ml`` by
ctypes, and call functions that fill what they are given. Whatever isn't answered here isn't supported, as on
a GPU without it; nor are links between GPUs, so that nobody goes past the process group over them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

_LIBRARY = "libnvidia-ml.so.1"
_DONE, _INVALID, _NOT_SUPPORTED = 0, 2, 3
_NO_LINK = 1
"""``NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED``."""


def install() -> None:
    """Be the library, for whoever loads it by ctypes."""
    plain = ctypes.CDLL

    class CDLL(plain):  # type: ignore[misc, valid-type]
        """``ctypes.CDLL``, of which one library is here."""

        def __new__(cls, name: Any = None, *_: Any, **__: Any) -> Any:
            return _Library() if name == _LIBRARY else super().__new__(cls)

    ctypes.CDLL = CDLL  # type: ignore[misc]


class _Library:
    """What ctypes would give: functions by name."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith("nvml"):
            raise AttributeError(name)
        known = _ANSWERS.get(name.removesuffix("_v2"))

        def answer(*given: Any) -> int:
            return _NOT_SUPPORTED if known is None else known(*given)

        return answer


def _target(pointer: Any) -> Any:
    """What ``byref`` points to."""
    return getattr(pointer, "_obj", pointer)


def _done(*_: Any) -> int:
    return _DONE


def _count(count: Any) -> int:
    _target(count).value = torch.cuda.device_count()
    return _DONE


def _handle(index: Any, handle: Any) -> int:
    number = getattr(index, "value", index)
    if number >= torch.cuda.device_count():
        return _INVALID
    # A handle is a pointer, and none of the node's devices' is null.
    target = _target(handle)
    pointer = ctypes.cast(ctypes.c_void_p(number + 1), type(target))
    ctypes.pointer(target)[0] = pointer
    return _DONE


def _number(handle: Any) -> int:
    """Which device a handle is."""
    return int(ctypes.cast(handle, ctypes.c_void_p).value or 1) - 1


def _index(handle: Any, index: Any) -> int:
    _target(index).value = _number(handle)
    return _DONE


def _name(handle: Any, text: Any, *_: Any) -> int:
    text.value = torch.cuda.get_device_name(_number(handle)).encode()
    return _DONE


def _identity(handle: Any, text: Any, *_: Any) -> int:
    text.value = f"GPU-00000000-0000-0000-0000-{_number(handle):012d}".encode()
    return _DONE


def _capability(handle: Any, major: Any, minor: Any) -> int:
    _target(major).value, _target(minor).value = torch.cuda.get_device_capability(_number(handle))
    return _DONE


def _memory(handle: Any, memory: Any) -> int:
    free, total = torch.cuda.mem_get_info(_number(handle))
    target = _target(memory)
    target.total, target.free, target.used = total, free, total - free
    return _DONE


def _between(_: Any, __: Any, ___: Any, status: Any) -> int:
    _target(status).value = _NO_LINK
    return _DONE


_ANSWERS: dict[str, Callable[..., int]] = {
    "nvmlInit": _done,
    "nvmlInitWithFlags": _done,
    "nvmlShutdown": _done,
    "nvmlDeviceGetCount": _count,
    "nvmlDeviceGetHandleByIndex": _handle,
    "nvmlDeviceGetIndex": _index,
    "nvmlDeviceGetName": _name,
    "nvmlDeviceGetUUID": _identity,
    "nvmlDeviceGetCudaComputeCapability": _capability,
    "nvmlDeviceGetMemoryInfo": _memory,
    "nvmlDeviceGetP2PStatus": _between,
}
