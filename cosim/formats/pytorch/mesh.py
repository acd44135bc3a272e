"""The mesh that one rank's process groups are axes of: what one rank's trace says of all others' groups."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from cosim.workload.program import DeviceMesh

Ranks = tuple[int, ...]


def mesh_of(
    groups: Iterable[Ranks], world_size: int
) -> tuple[DeviceMesh, dict[Ranks, tuple[str, ...]]] | None:
    """Axes such that each group is all ranks that differ in some of them only; None where there are none.

    Returns
    -------
    mesh, axes
        And the axes of each group.
    """
    listed = [*dict.fromkeys(groups)]
    digits = {group: _digits(tuple(sorted(group))) for group in listed}
    cuts = {1, world_size}
    for group, found in digits.items():
        if found is None or any(min(group) // stride % size for stride, size in found):
            return None
        cuts |= {cut for stride, size in found for cut in (stride, stride * size)}
    ordered = sorted(cuts)
    if any(high % low for low, high in pairwise(ordered)):
        return None
    strides = {f"every {low}": (low, high // low) for low, high in pairwise(ordered)}
    axes = {
        group: tuple(
            name
            for name, (cut, _) in reversed(strides.items())
            if any(stride <= cut < stride * size for stride, size in found or ())
        )
        for group, found in digits.items()
    }
    return DeviceMesh({name: size for name, (_, size) in reversed(strides.items())}), axes


def _digits(ranks: Ranks) -> list[tuple[int, int]] | None:
    """(stride, size) of each direction in which a group goes on evenly, the closest first."""
    if len(ranks) < 2:
        return []
    stride, size = ranks[1] - ranks[0], 2
    while size < len(ranks) and ranks[size] - ranks[size - 1] == stride:
        size += 1
    starts = ranks[::size]
    even = tuple(start + k * stride for start in starts for k in range(size))
    further = _digits(starts) if even == ranks and stride > 0 else None
    if further is None or any(step < stride * size for step, _ in further):
        return None
    return [(stride, size), *further]
