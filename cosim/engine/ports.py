"""Ends of messages of ranks: who is at the other end, where both meet, and what is sent."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.engine.program_columns import room_to_hash
from cosim.kernel import Columns
from cosim.workload.operation import Operation
from cosim.workload.program import DeviceMesh, Workload


class Meetings(Columns):
    """What is found of a job's ends of messages."""


def meetings_of(workload: Workload, ports: int) -> Meetings:
    """Room for what is found of so many ends."""
    prototypes = workload.table.prototypes
    stride, size, offset = _places(prototypes, workload.mesh)
    # One array each: all but the first few rows may be nobody's, and are let go of.
    rows = {
        name: np.empty(ports, np.int32)
        for name in ("sender", "receiver", "port", "source", "target", "channel")
    }
    return Meetings(
        program_of=np.ascontiguousarray(workload.program_of, np.int32),
        stride=stride,
        axis_size=size,
        offset=offset,
        channel_of=np.array([one.channel for one in prototypes], np.int64).astype(np.int32),
        tag=np.empty(ports, np.int64),
        size_bytes=np.empty(ports, np.int64),
        hashes=room_to_hash(ports),
        **rows,
    )


def _places(prototypes: Sequence[Operation], mesh: DeviceMesh) -> NDArray[np.int64]:
    """int64[3, prototypes]: stride, size and offset along the axis on which the other end is."""
    found, axes = np.zeros((3, len(prototypes)), np.int64), list(mesh.axes)
    for k, one in enumerate(prototypes):
        axis = None if one.peer is None else one.peer.axis
        if one.peer is not None and axis is not None and axis in mesh.axes:
            stride = math.prod(mesh.axes[name] for name in axes[axes.index(axis) + 1 :])
            found[:, k] = stride, mesh.axes[axis], one.peer.offset
    return found
