"""Settings near those that don't fit into a GPU's memory which do, on as many GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

from cosim.units import format_memory

if TYPE_CHECKING:
    from cosim.models.catalogue.workload import ModelWorkload

_SHOWN = 4
_HOST = 8
"""GPUs that tensor parallelism is suggested for: those of a host."""


def what_fits(spec: ModelWorkload, room: int) -> list[str]:
    """Up to four settings, those with the fewest changes first, each with what it needs."""
    found: list[tuple[str, frozenset[str]]] = []
    moves = list(_moves(spec))
    for count in (1, 2, 3):
        for chosen in combinations(moves, count):
            names = frozenset(text for text, _, _ in chosen)
            if any(fewer <= names for _, fewer in found):
                continue  # less is enough
            changed = [key for _, keys, _ in chosen for key in keys]
            if len(set(changed)) < len(changed):
                continue
            tried = _memory(spec, [changes for _, _, changes in chosen])
            if tried is not None and tried <= room:
                found.append((f"{', '.join(t for t, _, _ in chosen)} ({format_memory(tried)})", names))
            if len(found) == _SHOWN:
                return [text for text, _ in found]
        if found:
            break
    return [text for text, _ in found]


def _memory(spec: ModelWorkload, changes: list[dict[str, Any]]) -> int | None:
    """Bytes of the fullest GPU; None where settings don't go together."""
    settings: dict[str, Any] = {}
    for change in changes:
        parallel = {**settings.get("parallel", {}), **change.get("parallel", {})}
        settings = {**settings, **change, "parallel": parallel}
    try:
        return spec.with_settings(**settings).job().memory.total
    except ValueError:
        return None


def _moves(spec: ModelWorkload) -> Iterator[tuple[str, tuple[str, ...], dict[str, Any]]]:
    """What may be changed: as text, which settings that touches, and the settings."""
    p = spec.cut_by
    training = spec.task == "training"
    if training:
        if p.dp > 1 and not spec.sharded_optimizer:
            yield "sharded_optimizer: true", ("optimizer",), {"sharded_optimizer": True}
        if p.tp > 1 and not p.sequence_parallel:
            yield "parallel.sp: true", ("sp",), {"parallel": {"sp": True}}
        if spec.attends == "unfused":
            yield "attention: flash", ("attention",), {"attention": "flash"}
            if spec.recompute == "none":
                yield "recompute: selective", ("recompute",), {"recompute": "selective"}
        if spec.recompute != "full":
            yield "recompute: full", ("recompute",), {"recompute": "full"}
        if p.fsdp == 1 and p.dp > 1 and p.ep == 1:
            fsdp = {"dp": 1, "fsdp": p.dp}
            yield f"parallel.fsdp: {p.dp} instead of dp", ("dp", "optimizer"), {"parallel": fsdp}
    if spec.together > 1:
        yield "micro_batch: 1", ("micro_batch",), {"micro_batch": 1}
    for axis in ("tp", "pp"):
        for times in (2, 4, 8):
            size = getattr(p, axis) * times
            other = "dp" if p.dp % times == 0 else "fsdp"
            if getattr(p, other) % times or (axis == "tp" and size > _HOST):
                continue
            less = getattr(p, other) // times
            changes: dict[str, Any] = {axis: size, other: less}
            if other == "dp" and less % p.ep:
                continue
            yield f"parallel.{axis}: {size} with {other}: {less}", (axis, "dp"), {"parallel": changes}
    if p.dp * p.fsdp == 1:
        for axis in ("tp", "pp"):
            for times in (2, 4, 8, 16, 32, 64):
                size = getattr(p, axis) * times
                if axis == "tp" and size > _HOST:
                    continue
                text = f"parallel.{axis}: {size}, on {p.world_size * times} GPUs"
                yield text, (axis, "dp"), {"parallel": {axis: size}}
