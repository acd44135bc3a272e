"""Fast-forward: ten iterations of a GPT-13B on 128 GPUs, scale-out in ns-3, without, exact and within 1 %."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import MessageRecords
from cosim.engine.replay import replay
from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.network.hybrid import HybridNetwork
from cosim.network.simulator import NetworkStatistics
from tests.lab.benchmarks.rdma.fabric import FABRIC

F64 = NDArray[np.float64]
KINDS = (None, "exact", "1%")
ITERATIONS = 10
TEXT = (
    FABRIC
    + """
network:
  model: hybrid
  scale_up: fair_share
  scale_out: {model: ns3_rdma, control: dcqcn%s}
jobs:
  - name: gpt-13b
    workload:
      kind: transformer
      layers: 40
      hidden: 5120
      heads: 40
      vocabulary: 51200
      sequence: 2048
      micro_batch: 1
      micro_batches: 8
      tensor_parallel: 8
      pipeline_parallel: 8
      data_parallel: 2
      gradient_dtype: bf16
      gpu: h100-sxm
    iterations: %d
collectives: {all_reduce: ring}
"""
)


@dataclass(frozen=True)
class Ran:
    """What a run was: its hash of all completions, messages, ns-3's events, links' counts, seconds."""

    digest: str
    messages: MessageRecords
    events: int
    extra: dict[str, float]
    server_s: float
    wall_s: float


def ran(fast_forward: str | None, iterations: int = ITERATIONS) -> Ran:
    """One run, on servers of its own."""
    setting = "" if fast_forward is None else f", fast_forward: {fast_forward}"
    built = build(loads(TEXT % (setting, iterations)))
    assert isinstance(built.network, HybridNetwork)
    packets, told = built.network.networks[1], list[NetworkStatistics]()
    ask = packets.statistics

    def asked() -> NetworkStatistics:
        told.append(ask())
        return told[-1]

    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with patch.object(packets, "statistics", asked):
        records = replay(built.topology, built.network, built.jobs, built.planner, record_messages=True)
    wall_s = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert records.messages is not None
    extra = {name: float(values.sum()) for name, values in records.links.extra.items()}
    server_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(
        records.digest,
        records.messages,
        told[-1].events,
        extra,
        server_s,
        wall_s,
    )


def _fcts(messages: MessageRecords) -> tuple[F64, F64]:
    """Durations and ends of messages, in an order that doesn't hang on them."""
    keys = (messages.size_bytes, messages.dst, messages.src, messages.op, messages.iteration)
    order = np.lexsort((messages.start_ps, *keys))
    return (messages.end_ps - messages.start_ps)[order].astype(float), messages.end_ps[order].astype(float)


def row(name: str, one: Ran, plain: Ran) -> str:
    """A run beside the plain one."""
    took, ends = _fcts(one.messages)
    took_plain, ends_plain = _fcts(plain.messages)
    error = np.abs(took / took_plain - 1)
    late = np.abs(ends / ends_plain - 1)
    recalled, leapt, wrong = (
        one.extra.get(f"{key}_bytes", 0.0) for key in ("recalled", "leapt", "fast_forward_error")
    )
    estimated = wrong / max(recalled + leapt, 1.0)
    same = "same digest" if one.digest == plain.digest else ""
    return (
        f"{name:<6}{one.wall_s:>8.0f}{one.server_s:>10.1f}{one.events:>13,}"
        f"{plain.events / one.events:>7.1f} x"
        f"{error.mean():>9.3%}{error.max():>9.2%}{late.max():>10.4%}{estimated:>11.3%}"
        f"{recalled / 1e9:>10.0f}{leapt / 1e9:>8.0f}  {same}"
    )


def section() -> str:
    """A row for each kind."""
    plain = ran(None)
    lines = [
        f"GPT-13B, 128 GPUs, {ITERATIONS} iterations, {len(plain.messages.end_ps):,} messages",
        "",
        f"{'':<6}{'wall s':>8}{'server s':>10}{'events':>13}{'fewer':>9}{'error':>9}{'worst':>9}{'ends':>10}"
        f"{'estimated':>11}{'recalled':>10}{'leapt':>8}  GB on links",
    ]
    lines += [row(str(kind), plain if kind is None else ran(kind), plain) for kind in KINDS]
    return "\n".join([*lines, ""])
