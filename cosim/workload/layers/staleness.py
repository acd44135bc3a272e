"""Data parallelism layer by layer: gradients that are used an iteration late (SAPipe), weights that are
averaged now and then (local SGD).

SAPipe: the gradients of the first layers are synchronised last and needed first; used an iteration late, they
hide behind the next iteration. All others are needed layer by layer in the next forward pass. Synchronisation
is one queue, of layers as they become ready, or the first layers of an iteration first.

Sources: SAPipe (Y. Chen et al., NeurIPS 2022); local SGD (S. Stich, ICLR 2019, arXiv 1805.09767); one period
late: Wang et al., "Overlap Local-SGD" (ICASSP 2020, arXiv 2002.09539). Not modelled: accuracy; a transfer
that is interrupted for a more urgent one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from cosim.workload.layers.profile import LayerProfile
from cosim.workload.program import (
    COMM_STREAM,
    COMPUTE_STREAM,
    DeviceMesh,
    Operation,
    OpKind,
    Program,
    Workload,
)

Order = Literal["queue", "priority"]
_SETTLED, _LOOKED_AT = 40, 80
"""Iterations after which a period is taken, and up to where."""


def layer_by_layer(
    profile: LayerProfile, workers: int, *, stale: int = 0, order: Order = "queue", copy_ps: int = 0
) -> Workload:
    """Every worker has all layers; an all-reduce for each layer with weights.

    Parameters
    ----------
    profile
        The layers.
    workers
        Replicas.
    stale
        The gradients of so many first layers are used an iteration late.
    order
        Which synchronisation goes first.
    copy_ps
        Before each iteration: what predicting the weights of stale layers takes.
    """
    depth, copies = len(profile), int(copy_ps > 0 and stale > 0)
    backward = {layer: copies + 2 * depth - 1 - layer for layer in range(depth)}
    synced = [k for k in range(depth) if workers > 1 and profile.layers[k].parameter_bytes]
    listed = synced if order == "priority" else synced[::-1]
    sync = {layer: copies + 2 * depth + place for place, layer in enumerate(listed)}
    made: list[Operation] = []

    def compute(name: str, phase: str, duration_ps: int, *late: tuple[int, int]) -> None:
        """After what was computed before it, which may have been in the last iteration."""
        kind = OpKind.COMPUTE if phase else OpKind.MEMORY
        deps = (len(made) - 1,) if made else ()
        waits = tuple(sorted(late if made else ((backward[0], 1), *late)))
        made.append(
            Operation(name, kind, COMPUTE_STREAM, deps, duration_ps=duration_ps, phase=phase, lagged=waits)
        )

    if copies:
        compute("predict weights", "", copy_ps)
    for layer, one in enumerate(profile.layers):
        late = ((sync[layer], 2 if layer < stale else 1),) if layer in sync else ()
        compute(f"{one.name} forward", "forward", one.forward_ps, *late)
    for one in reversed(profile.layers):
        compute(f"{one.name} backward", "backward", one.backward_ps)
    for layer in listed:
        one = profile.layers[layer]
        made.append(_all_reduce(f"{one.name} gradients", (backward[layer],), one.parameter_bytes))
    return _replicas(profile.name, workers, made)


def averaged(profile: LayerProfile, workers: int, steps: int, *, late: bool = False) -> Workload:
    """Local SGD: an iteration is ``steps`` minibatches of each worker and an all-reduce of all weights, which
    the next iteration waits for, or, ``late``, the one after it.
    """
    made: list[Operation] = []
    passes = {
        "forward": sum(one.forward_ps for one in profile.layers),
        "backward": sum(one.backward_ps for one in profile.layers),
    }
    for step in range(steps):
        for phase, duration in passes.items():
            name, before = f"step {step} {phase}", (len(made) - 1,) if made else ()
            made.append(
                Operation(name, OpKind.COMPUTE, COMPUTE_STREAM, before, duration_ps=duration, phase=phase)
            )
    if workers > 1:
        end = len(made)
        made.append(_all_reduce("average weights", (end - 1,), int(profile.parameter_bytes.sum())))
        if late:
            made[0] = replace(made[0], lagged=((end - 1, 1), (end, 2)))
    return _replicas(profile.name, workers, made)


def _all_reduce(name: str, deps: tuple[int, ...], size_bytes: int) -> Operation:
    return Operation(
        name, OpKind.COLLECTIVE, COMM_STREAM, deps, collective="all_reduce", axes=("dp",),
        size_bytes=size_bytes, phase="backward",
    )  # fmt: skip


def _replicas(name: str, workers: int, operations: Sequence[Operation]) -> Workload:
    program = Program("every worker", tuple(operations))
    return Workload(name, DeviceMesh({"dp": workers}), (program,), np.zeros(workers, np.int32))


def period_ps(
    forward: Sequence[int], backward: Sequence[int], sync: Sequence[int], stale: int, order: Order = "queue"
) -> float:
    """An iteration's time in the steady state, where each layer's synchronisation takes ``sync`` whatever
    else goes on: picoseconds, as all arguments but ``stale`` are.
    """
    depth, now, free = len(forward), 0, 0
    ended = {-1: [0] * depth, -2: [0] * depth}
    began = []
    for iteration in range(_LOOKED_AT):
        began.append(now)
        for layer in range(depth):
            now = max(now, ended[iteration - (2 if layer < stale else 1)][layer]) + forward[layer]
        ready = [0] * depth
        for layer in reversed(range(depth)):
            now += backward[layer]
            ready[layer] = now
        ended[iteration], free = _synchronised(ready, sync, free, order)
    return (began[-1] - began[_SETTLED]) / (_LOOKED_AT - 1 - _SETTLED)


def _synchronised(
    ready: Sequence[int], sync: Sequence[int], free: int, order: Order
) -> tuple[list[int], int]:
    """When each layer's synchronisation has ended, one at a time from ``free`` on, and when the last has."""
    left = {layer for layer, size in enumerate(sync) if size}
    ended = [0] * len(sync)
    while left:
        free = max(free, min(ready[layer] for layer in left))
        could = [layer for layer in left if ready[layer] <= free]
        chosen = min(could) if order == "priority" else min(could, key=lambda layer: (ready[layer], -layer))
        free += sync[chosen]
        ended[chosen] = free
        left.remove(chosen)
    return ended, free


def fewest_stale(
    forward: Sequence[int], backward: Sequence[int], sync: Sequence[int], order: Order = "queue"
) -> int:
    """The fewest first layers that, stale, give the time of all stale; 0 where staleness gains nothing."""
    least = period_ps(forward, backward, sync, len(forward), order)
    return next(
        stale
        for stale in range(len(forward) + 1)
        if period_ps(forward, backward, sync, stale, order) <= least * (1 + 1e-9)
    )
