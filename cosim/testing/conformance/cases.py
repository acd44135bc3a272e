"""The topologies and flows that checks use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cosim.protocol.flat_flows import FlatFlows, make
from cosim.testing.conformance.kit import Probe
from cosim.testing.conformance.report import expect
from cosim.topology.graph import Topology
from cosim.topology.routing import ShortestPaths

RATE_BPS = 10e9
LATENCY_PS = 1_000_000
HOPS = 2
MESSAGE = 20_000
_PATIENCE = 1000


def star(endpoints: int = 8) -> Topology:
    """Endpoints around one switch: 10 Gb/s and 1 us each way."""
    return _cables(f"star of {endpoints}", endpoints, 1, [(k, endpoints) for k in range(endpoints)])


def two_hosts(endpoints: int = 8) -> Topology:
    """Two hosts of half of the endpoints, a scale-up switch in each, and a switch between all of them.

    Each pair is two links of 10 Gb/s and 1 us apart, as on :func:`star`.
    """
    half, nodes = endpoints // 2, range(endpoints)
    within = [(k, endpoints + k // half) for k in nodes]
    across = [(k, endpoints + 2) for k in nodes]
    made = _cables(f"two hosts of {half}", endpoints, 3, [*within, *across])
    scale_up = np.tile(np.repeat([True, False], endpoints), 2)
    return replace(made, scale_up=scale_up)


def _cables(name: str, endpoints: int, switches: int, ends: Sequence[tuple[int, int]]) -> Topology:
    """A link each way between two nodes; those of the first direction come first."""
    one, other = np.array(ends, np.int32).T
    hosts = (f"host{k}" for k in range(endpoints))
    return Topology(
        name,
        endpoints,
        (*hosts, *(f"switch{k or ''}" for k in range(switches))),
        np.concatenate([one, other]),
        np.concatenate([other, one]),
        np.full(2 * len(ends), RATE_BPS),
        np.full(2 * len(ends), LATENCY_PS, np.int64),
        ShortestPaths(),
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


def long_run(probe: Probe, rounds: int = 24) -> None:
    """One message after another; each other advance ends before its message does."""
    now = 0
    for k in range(rounds // 2):
        pair = (k % 8, (k + 1 + k % 3) % 8)
        probe.advance(flows(k, [pair], MESSAGE + k, now), now + LATENCY_PS)
        for _ in range(_PATIENCE):
            if k in probe.times():
                break
            now = max(now, probe.advance().granted_ps)
        expect(k in probe.times(), f"flow {k} never completed, in {_PATIENCE} advances without a horizon")
        now = max(now, probe.times()[k])
