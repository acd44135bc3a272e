"""ASTRA-sim's ``system.json``: implementations of collectives, chunks, delays; read by its ``Sys.cc``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosim.pattern.config import CollectiveConfig
from cosim.pattern.contract import Algorithm
from cosim.pattern.direct import Direct
from cosim.pattern.double_binary_tree import DoubleBinaryTree
from cosim.pattern.halving_doubling import HalvingDoubling
from cosim.pattern.ring import RingAlgorithm
from cosim.pattern.template import Collective
from cosim.translation.loss_report import LossReport
from cosim.translation.says import count_operations
from cosim.translation.source import Source
from cosim.units import PS_PER_NS

KINDS = (
    Collective.ALL_REDUCE,
    Collective.ALL_GATHER,
    Collective.REDUCE_SCATTER,
    Collective.ALL_TO_ALL,
)
"""Collectives that ASTRA-sim simulates."""

_FREE_REDUCTIONS_GBPS = 10**9
"""Fast enough that a reduction of any message takes 0 ns."""

_OPTIMIZATION = {"local_bw_aware": "localBWAware", "baseline": "baseline"}


def system_of(source: Source, num_dims: int, report: LossReport) -> dict[str, Any]:
    """The file's content, and what of the ``collectives`` section it doesn't say."""
    config = source.planner.config
    used = {kind.value: _count(source, kind) for kind in Collective}
    collectives = sum(used[kind.value] for kind in KINDS)
    if config.endpoint_delay % PS_PER_NS:
        report.approximated("endpoint delay", collectives, "rounded to whole nanoseconds")
    uneven = _uneven(source, config) if config.sizing == "exact" else 0
    report.approximated("collectives of uneven size", uneven, "ASTRA-sim drops remainders (sizing: floor)")
    for kind in (Collective.BROADCAST, Collective.BARRIER):
        why = "it takes no time there" if kind is Collective.BROADCAST else "ASTRA-sim has none"
        report.lost(f"{kind.value}s", used[kind.value], why)
    system: dict[str, Any] = {
        "scheduling-policy": "FIFO",
        "endpoint-delay": round(config.endpoint_delay / PS_PER_NS),
        "active-chunks-per-dimension": config.active_chunks,
        "preferred-dataset-splits": config.splits,
        "collective-optimization": _OPTIMIZATION[config.optimization],
        "local-mem-bw": _gigabytes(config.reduction_rate),
    }
    for kind in KINDS:
        chosen = config.choice(kind)
        names = _implementations(chosen, num_dims)
        if names is None:
            shown = "+".join(one.name for one in (chosen if isinstance(chosen, tuple) else (chosen,)))
            report.lost(f"algorithm {shown} of {kind.value}", used[kind.value], "ring there")
            names = ["ring"] * num_dims
        system[f"{kind.value.replace('_', '-')}-implementation"] = names
    return system


def _count(source: Source, kind: Collective) -> int:
    return count_operations(source, lambda op: op.collective == kind.value)


def _gigabytes(rate_bps: float | None) -> float | int:
    if rate_bps is None:
        return _FREE_REDUCTIONS_GBPS
    value = rate_bps / 8e9
    return int(value) if value == int(value) else value


def _implementations(chosen: Algorithm | Sequence[Algorithm], num_dims: int) -> list[str] | None:
    """ASTRA-sim's names, one for each dimension; None where it has no such algorithm."""
    if isinstance(chosen, Algorithm):
        name = _name(chosen)
        if name is None or num_dims == 1:
            return None if name is None else [name]
        if isinstance(chosen, DoubleBinaryTree):
            return None
        return [f"one{name[0].upper()}{name[1:]}"]  # one dimension of all: oneRing
    names = [_name(one) for one in chosen]
    return None if len(names) != num_dims or None in names else [str(name) for name in names]


def _name(algorithm: Algorithm) -> str | None:
    if isinstance(algorithm, RingAlgorithm):
        return "ring" if algorithm.channels == 1 else None
    if isinstance(algorithm, Direct):
        return f"direct{algorithm.window or ''}"
    if isinstance(algorithm, HalvingDoubling):
        return "halvingDoubling"
    return "doubleBinaryTree" if isinstance(algorithm, DoubleBinaryTree) else None


def _uneven(source: Source, config: CollectiveConfig) -> int:
    kinds = {kind.value for kind in KINDS}
    found = 0
    for job in source.ready:
        workload = job.info.workload
        for number, program in enumerate(workload.programs):
            ranks = (workload.program_of == number).nonzero()[0].tolist()
            for op in program.operations if ranks else ():
                if op.collective in kinds:
                    parts = len(job.group(ranks[0], op).ranks) * config.splits
                    found += len(ranks) * bool(op.size_bytes % parts)
    return found
