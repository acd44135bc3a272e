"""``torch.cuda`` on real tensors of the host: what a script asks of a GPU is carried out there, at once.

Streams and events order nothing, as everything is done when it is asked for; the generator is the host's;
of the GPU is said what a profile says (``profiler.inside.gpu_answers``). Operators are the CPU's own. A
kernel that only a GPU could carry out (Triton's, NVRTC's) is an error: nothing is made up.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch._dynamo  # these look at torch.cuda, or for triton, when they are imported
import torch._inductor.runtime.triton_heuristics
import torch.distributed.fsdp
import torch.utils.flop_counter

from cosim.profiler.inside import gpu_answers, remap, triton_kernels
from cosim.profiler.launch import device
from tests.lab.benchmarks import host_operators


class Stream:
    """A queue of which each piece is done when it is asked for."""

    def __init__(self, _: Any = None, priority: int = 0, **__: Any) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.device_index, self.stream_id, self.cuda_stream, self.priority = self.device.index, 0, 0, priority

    def record_event(self, event: Any = None) -> Any:
        """The event, which has happened."""
        return event or Event()

    def query(self) -> bool:
        """It is idle."""
        return True

    def is_capturing(self) -> bool:
        """There are no graphs."""
        return False

    def synchronize(self, *_: Any) -> None:
        """Nothing to wait for."""

    wait_event = wait_stream = synchronize

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Event:
    """Has happened when it was asked for."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def query(self) -> bool:
        """It has."""
        return True

    def elapsed_time(self, _: Any) -> float:
        """One millisecond, as in a profile."""
        return 1.0

    def record(self, *_: Any) -> None:
        """Nothing to do."""

    wait = synchronize = record


def _in(stream: Any) -> Any:
    return stream if stream is not None else Stream()


def install(devices: int, own: int) -> None:
    """Answer for ``devices`` H100s, of which ``own`` is the rank's."""
    remap.install()
    cuda, gpu = torch.cuda, device("h100-sxm")
    stream = Stream.__new__(Stream)
    answers = {
        **dict.fromkeys(gpu_answers.NOTHING, _nothing),
        **dict.fromkeys(gpu_answers.ZERO, _zero),
        **gpu_answers.about_gpu(gpu, gpu["memory"] or gpu_answers.MEMORY),
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: devices,
        "current_device": lambda: own,
        "Stream": Stream,
        "Event": Event,
        "stream": _in,
        "StreamContext": _in,
        "set_stream": _nothing,
        "current_stream": lambda *_, **__: stream,
        "is_current_stream_capturing": lambda: False,
        "default_stream": lambda *_, **__: stream,
        "get_rng_state": lambda *_, **__: torch.get_rng_state(),
        "set_rng_state": lambda state, *_, **__: torch.set_rng_state(state),
        "get_rng_state_all": lambda *_, **__: [torch.get_rng_state()] * devices,
        "default_generators": (torch.default_generator,) * devices,
        "synchronize": _nothing,
    }
    for module in (cuda, sys.modules["torch.cuda.random"], sys.modules["torch.cuda.memory"]):
        for name, value in answers.items():
            if module is cuda or hasattr(module, name):
                setattr(module, name, value)
    stream.__init__()  # type: ignore[misc]
    cuda.nccl.version = lambda *_: (2, 27, 3)
    torch.distributed.is_nccl_available = lambda: True
    cuda.nvtx.range_push = cuda.nvtx.range_pop = cuda.nvtx.mark = _nothing
    torch.Tensor.record_stream = _nothing
    torch.Tensor.pin_memory = lambda self, *_, **__: self
    _types()
    _accelerator(devices, own)
    host_operators.install()
    triton_kernels.install(_only_on_a_gpu)


def _nothing(*_: Any, **__: Any) -> None:
    pass


def _zero(*_: Any, **__: Any) -> int:
    return 0


def _only_on_a_gpu(name: str, _: list[Any]) -> None:
    raise RuntimeError(f"{name} is a kernel of a GPU: a host can't carry it out")


def _types() -> None:
    """Tensors say that they are a GPU's when their type is asked for by name."""
    plain = torch.Tensor.type

    def kind(self: Any, *args: Any, **given: Any) -> Any:
        found = plain(self, *args, **given)
        named = isinstance(found, str) and not found.startswith("torch.cuda.")  # a mode calls this twice
        return found.replace("torch.", "torch.cuda.") if named else found

    torch.Tensor.type = kind


def _accelerator(devices: int, own: int) -> None:
    """The device-neutral names of the same, and meshes of the CPU."""
    from torch.distributed import device_mesh

    for name, value in {
        "is_available": lambda: True,
        "device_count": lambda: devices,
        "current_accelerator": lambda *_, **__: torch.device("cuda"),
        "current_device_index": lambda: own,
        "set_device_index": _nothing,
        "set_device_idx": _nothing,
        "current_stream": lambda *_, **__: Stream(),
        "synchronize": _nothing,
    }.items():
        setattr(torch.accelerator, name, value)
    plain = device_mesh.init_device_mesh
    made = device_mesh.DeviceMesh.__init__

    def init_device_mesh(device_type: str, *args: Any, **given: Any) -> Any:
        return plain("cpu", *args, **given)

    def init(self: Any, device_type: str, *args: Any, **given: Any) -> None:
        made(self, "cpu", *args, **given)

    device_mesh.DeviceMesh.__init__ = init
    for loaded in list(sys.modules.values()):
        if getattr(loaded, "init_device_mesh", None) is plain:
            loaded.init_device_mesh = init_device_mesh  # type: ignore[attr-defined]
