"""The compute model's numbers by name, of a GPU's efficiency or of its host: read, bounded, changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic.fields import FieldInfo

from cosim.gpu.efficiency import Efficiency
from cosim.gpu.gpus import Gpu
from cosim.host.hosts import Host

PARTS: dict[Literal["efficiency", "host"], type[Efficiency] | type[Host]] = {
    "efficiency": Efficiency,
    "host": Host,
}
"""What has numbers, by the field of a GPU that it is."""


def owner(name: str) -> Literal["efficiency", "host"]:
    """Whose a parameter is.

    Raises
    ------
    KeyError
        There is none of that name.
    """
    for part, model in PARTS.items():
        if name in model.model_fields:
            return part
    raise KeyError(name)


def _field(name: str) -> FieldInfo:
    return PARTS[owner(name)].model_fields[name]


def value(gpu: Gpu, name: str) -> float:
    """Times in picoseconds."""
    found: float = getattr(getattr(gpu, owner(name)), name)
    return found


def bounds(name: str) -> tuple[float, float]:
    """The least and the largest that it may be; times in picoseconds."""
    low, high = (
        next(getattr(one, key) for one in _field(name).metadata if hasattr(one, key)) for key in ("ge", "le")
    )
    return low, high


def changed(gpu: Gpu, values: Mapping[str, float]) -> Gpu:
    """With other values, within their bounds; times in whole picoseconds."""
    given: dict[str, dict[str, float]] = {part: {} for part in PARTS}
    for name, wanted in values.items():
        low, high = bounds(name)
        inside = min(max(float(wanted), low), high)
        given[owner(name)][name] = round(inside) if _field(name).annotation is int else inside
    parts = {part: getattr(gpu, part).model_copy(update=own) for part, own in given.items() if own}
    return gpu.model_copy(update=parts)
