"""TopoOpt's jobs on links without switches: ``python -m tests.lab.validation.topoopt [published | large]``.

``published``: four jobs on 16 servers of 100 Gbit/s links beside what TopoOpt's authors simulated packet by
packet (Wang et al., NSDI 2023, arXiv 2202.00433; hipersys-team/TopoOpt at 4a68a66, Apache-2.0,
``simulation/scripts/fig16``). Its lists mix the jobs; how often a time occurs tells which job it is of: a
notebook beside them draws DLRM, BERT, CANDLE and VGG-16 with odds of 0.35, 0.42, 0.20 and 0.02.

``large``: six models on 128 servers with four links, beside fat-trees and an ideal switch.

A server is one endpoint: four GPUs work on a quarter of its samples each, and what they exchange is left out.
All parallelism is over samples but for embedding tables, which are shared out. Sizes are those of the
authors' scripts.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import cosim
from cosim.units import PS_PER_MS

GPU = "a100-80gb"
RATE_GBPS = 100
Sizes = list[list[int]]


@dataclass(frozen=True)
class Job:
    """A model, samples of one of a server's GPUs, and what was published of 16 servers, in ms."""

    name: str
    model: str | dict[str, Any]
    batch: int
    published_ms: dict[int, list[float]] | None = None
    odds: float = 0
    """of being drawn, in the authors' mixes of 5 to 27 jobs"""

    def iteration_ms(self, servers: int, fabric: dict[str, Any], dtype: str = "tf32") -> float:
        """The second of two iterations."""
        workload = {
            "kind": "model",
            "model": self.model,
            "gpu": GPU,
            "dtype": dtype,
            "micro_batch": self.batch,
            "parallel": {"dp": servers},
            "memory": "ignore",
        }
        run = cosim.run(
            {
                "name": self.name.lower(),
                "network": "fair_share",
                "jobs": [{"workload": workload, "iterations": 2}],
                **fabric,
            }
        )
        ends = run.records.iteration_end_ps[0].max(axis=1)
        return float(ends[1] - ends[0]) / PS_PER_MS


def direct(servers: int, degree: int) -> dict[str, Any]:
    """Servers linked by strides."""
    topology = {"kind": "direct_connect", "servers": servers, "degree": degree, "strides": "auto"}
    return {"topology": {**topology, **links(RATE_GBPS)}, "collectives": {"all_reduce": "multi_ring"}}


def switch(servers: int, rate_gbps: int) -> dict[str, Any]:
    """One switch for all."""
    return {"topology": {"kind": "switch", "endpoints": servers, **links(rate_gbps)}}


def fat_tree(k: int, rate_gbps: int) -> dict[str, Any]:
    """k ** 3 / 4 servers, as much rate above a switch as below."""
    return {"topology": {"kind": "fat_tree", "k": k, **links(rate_gbps)}}


def links(rate_gbps: int) -> dict[str, str]:
    """Of any fabric."""
    return {"rate": f"{rate_gbps}Gbps", "latency": "1us"}


def chain(*sizes: int) -> Sizes:
    """[inputs, outputs] of linear layers in a row."""
    return [list(pair) for pair in pairwise(sizes)]


def candle(width: int, feature: int, dense: int) -> dict[str, Any]:
    """CANDLE Uno: a tower for each of five inputs, whose outputs and two doses go into dense layers."""
    towers = [
        layer for inputs in (942, 5270, 2048, 5270, 2048) for layer in chain(inputs, *[width] * feature)
    ]
    linear = towers + chain(5 * width + 2, *[width] * dense, 1)
    return {"kind": "convolutional", "name": "CANDLE", "convolutions": [], "linear": linear}


def bert(layers: int, hidden: int, heads: int, sequence: int) -> dict[str, Any]:
    """Transformer layers alone."""
    sizes = {"layers": layers, "hidden": hidden, "heads": heads, "ffn": 4 * hidden, "sequence": sequence}
    return {
        "kind": "transformer",
        "name": "BERT",
        **sizes,
        "vocabulary": 1,
        "gated": False,
        "norm": "layer",
        "biases": True,
        "causal": False,
    }


def tables(name: str, rows: list[int], width: int, bottom: list[int], top: list[int]) -> dict[str, Any]:
    """Embedding tables, shared out over the servers, between two MLPs."""
    ends = {"dense": bottom[0], "bottom": [*bottom[1:], width], "top": [*top, 1]}
    return {"kind": "recommendation", "name": name, "rows": rows, "width": width, **ends}


PUBLISHED = [
    Job(
        "DLRM",
        tables("DLRM", [10_000_000] * 16, 256, [1024] * 8, [2048] * 16),
        256,
        {4: [23.164, 23.639, 24.440, 25.154, 33.581], 8: [15.185, 19.382, 19.612, 19.926, 20.917]},
        0.35,
    ),
    Job("BERT", bert(6, 768, 12, 256), 16, {4: [62.815], 8: [62.644]}, 0.65 * 0.65),
    Job("CANDLE", candle(4096, 12, 8), 256, {4: [225.222], 8: [131.546]}, 0.65 * 0.35 * 0.9),
    Job("VGG-16", "vgg-16", 64, {4: [100.559], 8: [100.559]}, 0.65 * 0.35 * 0.1),
]
LARGE = [
    Job("DLRM", tables("DLRM", [10_000_000] * 64, 128, [2048] * 8, [4096] * 16), 128),
    Job("CANDLE", candle(16384, 16, 8), 256),
    Job("BERT", bert(12, 1024, 16, 64), 16),
    # As many numbers as 32 tables each of users and items, 128 wide for the MLP and 64 wide for the product.
    Job("NCF", tables("NCF", [1_000_000] * 96, 128, [128], [4096] * 8), 128),
    Job("ResNet-50", "resnet-50", 128),
    Job("VGG-16", "vgg-16", 64),
]


def published() -> None:
    """Both degrees of each job beside the authors'."""
    print("job     degree  published ms  ours ms   error")
    means = {4: 0.0, 8: 0.0}
    for job in PUBLISHED:
        for degree, times in (job.published_ms or {}).items():
            theirs, ours = float(np.median(times)), job.iteration_ms(16, direct(16, degree))
            means[degree] += job.odds * ours
            among = f" ({min(times):.1f} to {max(times):.1f})" if len(times) > 1 else ""
            print(f"{job.name:8} {degree:5} {theirs:13.1f} {ours:8.1f} {ours / theirs - 1:+7.1%}{among}")
    print(f"mean of a mix: {means[4]:.1f} ms, published 71.7 to 80.8; degree 8: {means[8]:.1f}, 60.4 to 70.6")
    print(
        f"BERT in FP32, without tensor cores: {PUBLISHED[1].iteration_ms(16, direct(16, 4), 'fp32'):.1f} ms"
    )


def large() -> None:
    """Six models on links without switches, fat-trees of three rates, an ideal switch."""
    fabrics = {
        "links": direct(128, 4),
        **{f"tree {rate}": fat_tree(8, rate) for rate in (100, 200, 400)},
        "switch": switch(128, 4 * RATE_GBPS),
    }
    print("job        " + "".join(f"{name:>11}" for name in fabrics) + "   ms; tree 100 over links")
    for job in LARGE:
        took = {name: job.iteration_ms(128, fabric) for name, fabric in fabrics.items()}
        ratio = took["tree 100"] / took["links"]
        print(f"{job.name:11}" + "".join(f"{ms:11.1f}" for ms in took.values()) + f"   {ratio:.2f}")


if __name__ == "__main__":
    for section in sys.argv[1:] or ["published", "large"]:
        {"published": published, "large": large}[section]()
