"""The topologies and flows that checks use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cosim.protocol.columns import FlatFlows, make
from cosim.topology.graph import Topology
from cosim.topology.routing import Shortest
from cosim.units import NEVER

RATE_BPS = 10e9
LATENCY_PS = 1_000_000
HOPS = 2


def star(endpoints: int) -> Topology:
    """Endpoints around one switch: 10 Gb/s and 1 us each way."""
    leaves = np.arange(endpoints, dtype=np.int32)
    centre = np.full(endpoints, endpoints, np.int32)
    links = 2 * endpoints
    return Topology(
        f"star of {endpoints}",
        endpoints,
        (*(f"host{k}" for k in range(endpoints)), "switch"),
        np.concatenate([leaves, centre]),
        np.concatenate([centre, leaves]),
        np.full(links, RATE_BPS),
        np.full(links, LATENCY_PS, np.int64),
        Shortest(),
        (endpoints,),
    )


def ideal_ps(size_bytes: int) -> int:
    """A message alone on the star: its bytes at line rate, and the latency of both links."""
    return round(size_bytes * 8e12 / RATE_BPS) + HOPS * LATENCY_PS


def flows(
    first_id: int,
    pairs: Sequence[tuple[int, int]],
    size_bytes: int | Sequence[int],
    start_ps: int | Sequence[int],
    *,
    reaction: int = 0,
    waits_for: Sequence[Sequence[int]] = (),
    kinds: Sequence[Sequence[int]] = (),
    delay_ps: int = 0,
    **columns: Any,
) -> FlatFlows:
    """Flows between pairs; keys are (0, id). ``waits_for[k]`` are ids that flow k waits for."""
    made = make(
        first_id,
        len(pairs),
        key_low=first_id + np.arange(len(pairs)),
        src=[pair[0] for pair in pairs],
        dst=[pair[1] for pair in pairs],
        size_bytes=size_bytes,
        start_ps=start_ps,
        reaction_delay_ps=reaction,
        delay_ps=delay_ps,
        **columns,
    )
    if waits_for:
        made.dependency_ptr = np.concatenate([[0], np.cumsum([len(w) for w in waits_for])]).astype(np.int64)
        made.dependency_id = np.array([one for w in waits_for for one in w], np.int64)
        made.dependency_kind = np.array(
            [k for row in kinds for k in row] if kinds else np.zeros(len(made.dependency_id)), np.int8
        )
    return made


FOREVER = NEVER
