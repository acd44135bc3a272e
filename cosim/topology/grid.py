"""Grids of 1 to N dimensions, each a Ring, a FullyConnected or a Switch, as ASTRA-sim composes them.

Endpoint e has the coordinates (e % n0, e // n0 % n1, ...): dimension 0 varies fastest. A link joins
endpoints that differ in one coordinate only, or such an endpoint and the switch of its group; every
dimension has links of its own. Endpoints forward from one dimension to the next.

Source: ASTRA-sim's analytical network backend (``congestion_aware`` for the links and the ring's tie,
``congestion_unaware`` for the numbering), doi:10.1109/ISPASS57527.2023.00035. ASTRA-sim's congestion-aware
backend is one-dimensional, so the order of dimensions in a path that crosses several is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from cosim.topology.graph import F64, I32, I64, Paths, Topology, check_endpoints
from cosim.topology.traced import link_column

Kind = Literal["Ring", "FullyConnected", "Switch"]
"""As ASTRA-sim names them."""
OwnKind = Literal["Torus", "Line"]
"""A ring where half of the pairs that lie opposite go either way, and a ring that is cut."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension: its kind, endpoints along it, and each directed link's rate and latency."""

    kind: Kind | OwnKind
    size: int
    rate_bps: float
    latency_ps: int

    def num_links(self, endpoints: int) -> int:
        """Directed links of this dimension in a grid of so many endpoints."""
        if self.size == 1 and self.kind != "Switch":
            return 0
        if self.kind == "Line":
            return endpoints // self.size * (self.size - 1) * 2
        if self.kind in ("Ring", "Torus"):
            return endpoints if self.size == 2 else 2 * endpoints
        return endpoints * (self.size - 1) if self.kind == "FullyConnected" else 2 * endpoints


@dataclass(frozen=True, eq=False, slots=True)
class DimensionOrdered(Paths):
    """Routing on a grid: dimension 0 is crossed first, then 1, and so on; closed form, no tables.

    On a Ring the shorter way is taken, clockwise (+1) on a tie; on a Torus each way by half of the ties, so
    that an all-to-all loads all links alike. Deterministic; the channel plays no part.
    """

    dimensions: tuple[Dimension, ...]
    name: str = "dimension_ordered"

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`; a grid is connected, so that every path exists."""
        from cosim.topology.grid_paths import grid_paths

        src, dst, channel = check_endpoints(topology, src, dst, channel)
        counts = [d.num_links(topology.num_endpoints) for d in self.dimensions]
        first = accumulate(counts, initial=0)
        crossed = [(d.kind, d.size, at) for d, at in zip(self.dimensions, first, strict=False)]
        return grid_paths(crossed, topology.num_endpoints, src, dst)


def grid_name(dimensions: Sequence[Dimension]) -> str:
    """``Ring(2) x FullyConnected(8) x Switch(4)``."""
    return " x ".join(f"{d.kind}({d.size})" for d in dimensions)


def grid_links(dimensions: Sequence[Dimension]) -> tuple[tuple[str, ...], I32, I32, F64, I64]:
    """Node names and link columns (source, destination, rate, latency) of a grid.

    Links are numbered dimension by dimension. With N endpoints, the links of one dimension of size n are,
    for a Ring: N clockwise, then N anticlockwise ones (none of the latter where n is 2, as both ways
    lead to the same neighbour); Torus: the same; Line: all up, then all down, line by line; FullyConnected:
    n - 1 for each endpoint, by destination; Switch: N up, then N down.
    """
    n = math.prod(d.size for d in dimensions)
    ids = np.arange(n, dtype=np.int64)
    names = [f"npu{i}" for i in range(n)]
    src: list[Any] = []
    dst: list[Any] = []
    stride = 1
    for number, d in enumerate(dimensions):
        here = ids // stride % d.size
        if d.kind == "Switch":
            group = ids // (stride * d.size) * stride + ids % stride
            switch = len(names) + group
            prefix = "switch" if len(dimensions) == 1 else f"dim{number}.switch"
            names += [f"{prefix}{i}" for i in range(n // d.size)]
            src += [ids, switch]
            dst += [switch, ids]
        elif d.kind in ("Ring", "Torus") and d.size > 1:
            for step in (1, -1)[: d.num_links(n) // n]:
                src.append(ids)
                dst.append(ids + ((here + step) % d.size - here) * stride)
        elif d.kind == "Line":
            line = ids // (stride * d.size) * stride + ids % stride
            along = ids[np.lexsort((here, line))].reshape(-1, d.size)
            lower, upper = along[:, :-1].ravel(), along[:, 1:].ravel()
            src += [lower, upper]
            dst += [upper, lower]
        elif d.kind == "FullyConnected":
            others = np.arange(d.size - 1)[None, :]
            there = others + (others >= here[:, None])
            src.append(np.repeat(ids, d.size - 1))
            dst.append((ids[:, None] + (there - here[:, None]) * stride).ravel())
        stride *= d.size
    counts = [d.num_links(n) for d in dimensions]
    none: list[Any] = [np.empty(0, np.int32)]
    return (
        tuple(names),
        np.concatenate(src or none).astype(np.int32),
        np.concatenate(dst or none).astype(np.int32),
        link_column("link_rate_bps", [d.rate_bps for d in dimensions], counts),
        link_column("link_latency_ps", [d.latency_ps for d in dimensions], counts),
    )


def grid_topology(
    dimensions: Sequence[Dimension], routing: Paths | None = None, name: str | None = None
) -> Topology:
    """The topology of a grid; routed dimension by dimension unless ``routing`` says otherwise."""
    names, src, dst, rate, latency = grid_links(dimensions)
    sizes = tuple(d.size for d in dimensions)
    return Topology(
        name=name or grid_name(dimensions),
        num_endpoints=math.prod(sizes),
        node_names=names,
        link_src=src,
        link_dst=dst,
        link_rate_bps=rate,
        link_latency_ps=latency,
        routing=routing if routing is not None else DimensionOrdered(tuple(dimensions)),
        dims=sizes,
        info={"dimensions": [d.kind for d in dimensions]},
    )
