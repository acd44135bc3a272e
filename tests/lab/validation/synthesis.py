"""Synthetic traces beside their sources, one line each: ``python -m tests.lab.validation.synthesis``.

Sources: Chakra's ``feeder_tests_rank0.et`` on 8 ranks, DLRM's 8 ranks (PyTorch and Kineto), ResNet on 2 ranks
(timed on a V100), and GPT-3 1.7B of the catalogue with twice the layers that were learned. Each is made anew
with seed 3, learned as it is and with ``--hide 20``, and run on five networks.

Columns are the worst of all kinds of operations (count, bytes, Kolmogorov-Smirnov distance of durations in
whole microseconds), depth, width, and the worst iteration of the five networks. ``order`` says whether two
networks that differ by over 1 % for the source differ in the same way. ``found`` counts what an audit found.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cosim
from cosim.synthesis.audit import audit
from cosim.synthesis.draw import Scale, synthesise
from cosim.synthesis.learn import learn
from cosim.synthesis.sources import read_sources
from cosim.units import PS_PER_US
from cosim.workload.program import Workload
from tests.inputs import find
from tests.synthesis.figures import figures

NETWORKS: Mapping[str, tuple[str, str, str, str]] = {
    "ring of 100 Gbps": ("ring", "100Gbps", "1us", "fair_share"),
    "switch of 10 Gbps": ("switch", "10Gbps", "2us", "fair_share"),
    "switch of 25 Gbps, no congestion": ("switch", "25Gbps", "5us", "congestion_unaware"),
    "mesh of 200 Gbps": ("fully_connected", "200Gbps", "500ns", "congestion_aware"),
    "ring of 1 Gbps": ("ring", "1Gbps", "10us", "fair_share"),
}
TRANSFORMER = """
topology: {{kind: ring, endpoints: 8, rate: 100Gbps, latency: 1us}}
network: fair_share
jobs:
  - workload:
      kind: model
      model:
        {{kind: transformer, layers: {layers}, hidden: 2304, heads: 24, ffn: 9216, sequence: 2048,
          vocabulary: 51200}}
      gpu: a100-80gb
      batch: 16
      micro_batch: 2
      parallel: {{dp: 4, tp: 2}}
"""


@dataclass(frozen=True)
class Beside:
    """Relative errors, the largest of each sort; ``found`` is what an audit found."""

    count: float
    size_bytes: float
    ks: float
    depth: float
    width: float
    iteration: float
    same_order: bool
    found: int
    seconds: float


def feeder() -> Workload:
    """A real trace of one rank, on 8 ranks."""
    return read_sources(
        [find("chakra") / "feeder_tests_rank0.et"], world_size=8, gpu=None, dependencies="data"
    )


def dlrm() -> Workload:
    """8 real ranks."""
    files = [find("pytorch") / f"dlrm_{name}.tar.gz" for name in ("pytorch_et", "kineto")]
    return read_sources(files, world_size=None, gpu=None, dependencies="all")


def resnet() -> Workload:
    """A real execution trace, on 2 ranks."""
    return read_sources(
        [find("pytorch") / "resnet_2gpu_et.json.gz"], world_size=2, gpu="v100-sxm2", dependencies="all"
    )


def transformer(layers: int) -> Workload:
    """GPT-3 1.7B with so many layers, as Chakra traces."""
    with tempfile.TemporaryDirectory() as place:
        cosim.translate(cosim.loads(TRANSFORMER.format(layers=layers)), "chakra", Path(place) / "traces")
        return read_sources([Path(place) / "traces"], world_size=None, gpu=None, dependencies="all")


def beside(source: Workload, hide: int, learned: Workload | None = None, layers: float = 1) -> Beside:
    """A source beside what is made of it, or of another with ``layers`` times as many."""
    begin = time.process_time()
    made = synthesise(learn(learned or source, hide=hide), seed=3, scale=Scale(layers=layers))
    seconds = time.process_time() - begin
    a, b = figures(source), figures(made)
    kinds = [(kind, b.kinds[name]) for name, kind in a.kinds.items()]
    ends = [(_iteration(source, name), _iteration(made, name)) for name in NETWORKS]
    return Beside(
        max(abs(theirs.count / ours.count - 1) for ours, theirs in kinds),
        max(abs(theirs.size_bytes / ours.size_bytes - 1) for ours, theirs in kinds if ours.size_bytes),
        max(_ks(ours.times_ps, theirs.times_ps) for ours, theirs in kinds),
        abs(b.depth / a.depth - 1),
        abs(b.width / a.width - 1),
        max(abs(theirs / ours - 1) for ours, theirs in ends),
        _same_order(ends),
        len(audit(source, hide, made)) if hide > 1 else 0,
        seconds,
    )


def _same_order(ends: list[tuple[int, int]]) -> bool:
    """Whether of two networks that differ by over 1 % for the source none is the faster one here."""
    pairs = [(a, b) for a in ends for b in ends if a[0] > 1.01 * b[0]]
    return all(a[1] >= b[1] for a, b in pairs)


def _ks(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float:
    a, b = ((times + PS_PER_US // 2) // PS_PER_US for times in (ours, theirs))
    values = np.unique(np.concatenate([a, b]))
    shares = [np.searchsorted(one, values, side="right") / len(one) for one in (a, b)]
    return float(np.abs(shares[0] - shares[1]).max())


def _iteration(workload: Workload, network: str) -> int:
    kind, rate, latency, model = NETWORKS[network]
    topology = {"kind": kind, "endpoints": workload.world_size, "rate": rate, "latency": latency}
    done = cosim.run({"topology": topology, "network": model, "jobs": [{"workload": workload}]})
    return done.records.end_ps


def main() -> None:
    """Print the table."""
    print("source           hide  count  bytes     KS  depth  width  iteration  order  found  CPU-s")
    for read in (feeder, dlrm, resnet):
        source = read()
        for hide in (1, 20):
            _show(read.__name__, hide, beside(source, hide))
    for hide in (1, 20):
        _show("1.7B, 2 x layers", hide, beside(transformer(24), hide, transformer(12), 2))


def _show(name: str, hide: int, row: Beside) -> None:
    shares = [f"{one:6.1%}" for one in (row.count, row.size_bytes)]
    rest = f"{row.ks:6.3f} {row.depth:6.1%} {row.width:6.1%} {row.iteration:9.1%}"
    order = "same" if row.same_order else "other"
    print(
        f"{name:16} {hide:4} {' '.join(shares)} {rest}   {order:>5} {row.found:6} {row.seconds:6.1f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
