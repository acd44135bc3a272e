"""Fits ``nccl``'s parameters to measured collectives of one host, by the closed forms of its algorithms.

Without contention, and all ranks there at once, a collective takes ``start`` (more, the more channels have
work) and then:

- a ring of N: (N - 1) steps, twice for an all-reduce, each its protocol's latency and one part over the link;
  a gap after each loop;
- a chain (broadcast): N - 1 hops of a piece, then the other pieces behind it;
- straight to each peer: a latency, and all messages one after another over the link.

What is fitted: ``latency``, ``least_latency``, ``nvlink_efficiency``, ``loop_gap``; relative errors, the log
of a Lorentzian (a few odd measurements don't matter), by a search within bounds that always takes the same
way. The protocol is NCCL's choice. Not fitted: several hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.pattern.nccl import CHAIN_PIECE, CHAIN_PIECES, Nccl
from cosim.pattern.nccl_tuning import nvlink_us
from cosim.pattern.nccl_wire import DATA_PER_WIRE
from cosim.pattern.template import Collective
from cosim.units import PS_PER_S, PS_PER_US

_FITTED = ("latency", "least_latency", "nvlink_efficiency", "loop_gap")
_STEP = {"latency": 10e6, "least_latency": 4e6, "nvlink_efficiency": 0.05, "loop_gap": 10e6}
_SCALE = 0.05
_LAWFUL = (
    Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeasuredCollective:
    """A collective over ``ranks`` of one host, and its seconds; bytes as ``Collective`` counts them."""

    collective: Collective
    ranks: int
    size_bytes: int
    seconds: float


def host_s(spec: Nccl, collective: Collective, ranks: int, size_bytes: int, rate: float) -> float:
    """Seconds of a collective on one host; ``rate``: bytes a second of a GPU's links, one way."""
    if spec.law is not None and collective in _LAWFUL:
        whole = size_bytes * (ranks if collective is Collective.ALL_GATHER else 1)
        return spec.law.seconds(collective, ranks, whole, spec.number_bytes)
    algorithm, protocol = spec.choose(collective, ranks, size_bytes)
    hop = nvlink_us(algorithm, protocol) / 1e6
    wire = rate * spec.nvlink_efficiency * DATA_PER_WIRE[protocol]
    gather = collective is Collective.ALL_GATHER
    whole = size_bytes * (ranks if gather else 1)
    start = spec.start_ps(algorithm, protocol, ranks, whole) / PS_PER_S
    if algorithm == "direct":
        messages, each = (
            (1, size_bytes) if collective is Collective.SEND_RECV else (ranks - 1, size_bytes / ranks)
        )
        return start + hop + messages * each / wire
    if collective is Collective.BROADCAST:
        pieces = min(max(size_bytes // CHAIN_PIECE, 1), CHAIN_PIECES)
        piece = size_bytes / pieces / wire
        return start + (ranks - 1) * (hop + piece) + (pieces - 1) * max(hop, piece)
    halves = 2 if collective is Collective.ALL_REDUCE else 1
    gaps = spec.loop_gap / PS_PER_S * halves / 2 * whole / ranks / spec.buffer
    return start + halves * (ranks - 1) * (hop + whole / ranks / wire) + gaps


def fit_nccl(
    measured: Sequence[MeasuredCollective], rate: float, spec: Nccl | None = None
) -> tuple[Nccl, float]:
    """The parameters that fit best, and the mean of the absolute relative errors with them."""
    best = spec if spec is not None else Nccl()
    least = _cost(best, measured, rate)
    steps = dict(_STEP)
    for _ in range(200):
        better = False
        for name in _FITTED:
            for way in (1, -1):
                tried = _moved(best, name, way * steps[name])
                cost = _cost(tried, measured, rate)
                if cost < least * (1 - 1e-9):
                    best, least, better = tried, cost, True
        if not better:
            if steps["nvlink_efficiency"] < 1e-4:
                break
            steps = {name: step / 2 for name, step in steps.items()}
    return best, float(np.mean(np.abs(_errors(best, measured, rate))))


def _moved(spec: Nccl, name: str, step: float) -> Nccl:
    field = Nccl.model_fields[name]
    low, high = (
        next(getattr(one, key) for one in field.metadata if hasattr(one, key)) for key in ("ge", "le")
    )
    value = min(max(getattr(spec, name) + step, low), high)
    return spec.model_copy(update={name: value if field.annotation is float else round(value)})


def _errors(
    spec: Nccl, measured: Sequence[MeasuredCollective], rate: float
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(
        [host_s(spec, one.collective, one.ranks, one.size_bytes, rate) / one.seconds - 1 for one in measured]
    )


def _cost(spec: Nccl, measured: Sequence[MeasuredCollective], rate: float) -> float:
    ratio = np.log1p(_errors(spec, measured, rate)) / _SCALE
    return float(np.log1p(ratio**2).sum())


def scenario_lines(spec: Nccl) -> str:
    """What a scenario's ``collectives:`` says to use it."""
    values = {
        "latency": f"{spec.latency / PS_PER_US:.4g}us",
        "least_latency": f"{spec.least_latency / PS_PER_US:.4g}us",
        "nvlink_efficiency": f"{spec.nvlink_efficiency:.4g}",
        "loop_gap": f"{spec.loop_gap / PS_PER_US:.4g}us",
    }
    settings = ", ".join(f"{name}: {value}" for name, value in values.items())
    lines = [f"  all_reduce: &nccl {{algorithm: nccl, {settings}}}"]
    lines += [f"  {kind}: *nccl" for kind in ("all_gather", "reduce_scatter", "all_to_all", "broadcast")]
    return "\n".join(["collectives:", *lines])
