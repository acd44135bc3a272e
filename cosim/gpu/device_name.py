"""Which GPU of the catalogue a device is, by what its driver says.

A driver's name has the family and hardly more ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H200"):
of those entries whose family is a word of it, the one with as many multiprocessors and the nearest memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cosim.gpu.gpus import Gpu

_ALIKE = 0.2
"""By how much of an entry's memory a device's may differ: drivers keep some, and say it in other units."""


def named_by_driver(
    device: str, multiprocessors: int, memory_bytes: int, entries: Iterable[Gpu]
) -> Gpu | None:
    """The entry that a device is; None: there is none."""
    words = set(re.split(r"[^A-Z0-9]+", device.upper()))
    alike = [
        (abs(memory_bytes - gpu.memory), gpu)
        for gpu in entries
        if gpu.name.upper().split("-")[0] in words
        and gpu.multiprocessors == multiprocessors
        and gpu.memory is not None
        and abs(memory_bytes - gpu.memory) <= _ALIKE * gpu.memory
    ]
    return min(alike, key=lambda pair: pair[0])[1] if alike else None
