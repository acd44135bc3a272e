"""What one rank did, as recorded: kernels and communications in the order in which they were issued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Communication:
    """A collective or message: its group's ranks in order, bytes as ``cosim.workload.program`` counts them.

    ``kind``: a collective's name, ``send`` or ``recv``. ``peer``: rank of the other end. ``root``: position.
    """

    kind: str
    ranks: tuple[int, ...]
    size_bytes: int
    root: int = 0
    peer: int = -1
    tag: int = 0
    name: str = ""


HOST_STREAM = "host"
"""Where the host waits for the GPU: what is issued after is issued when that is over."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One thing that was issued: a kernel (``cosim.profiler.inside.kernels.Cost``) or a
    communication; neither, on the ``HOST_STREAM``: a wait. ``graphed``: replayed by a CUDA graph, without a
    launch of its own.
    """

    stream: str
    phase: str
    kernel: Any = None
    communication: Communication | None = None
    graphed: bool = False
