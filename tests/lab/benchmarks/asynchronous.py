"""Pipelines and staleness, predicted and simulated: ``python -m tests.lab.benchmarks.asynchronous``.

VGG-16, ResNet-50 and GNMT on 16 V100s, layers as PipeDream's profiler measured them, 1 to 100 Gbps:
milliseconds of a minibatch under data parallelism as simulated (layer by layer), with all gradients an
iteration late, with the fewest stale layers that are as fast, and under PipeDream's plan, predicted and
simulated, on a switch and on four leaves of four; ``deep`` with more minibatches in flight, so that fewer
wait for messages of others. Profiles: ``tests/data/README.md``. ``--figure FILE`` draws speed over
synchronous data parallelism. ``--reported`` takes the two clusters on which PipeDream reports VGG-16 instead,
and changes data parallelism step by step into what theirs may have been.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import cosim
from cosim.errors import CosimError
from cosim.workload.layers.graph_file import read_graph
from cosim.workload.layers.partition import Level, partition
from cosim.workload.layers.plan import StagePlan
from tests.inputs import absent, find

MODELS = ("vgg16", "resnet50", "gnmt")
RATES = (1, 5, 10, 25, 50, 100)
WORKERS = 16
SWITCH = {"kind": "switch", "endpoints": WORKERS, "latency": "1us"}
LEAVES = {"kind": "leaf_spine", "leaves": 4, "spines": 4, "endpoints_per_leaf": 4, "latency": "1us"}
DEEP = 8
"""Minibatches in flight more."""


@dataclass(frozen=True)
class Row:
    """Milliseconds of a minibatch."""

    model: str
    gbps: int
    synchronous: float
    stale: float
    fewest: str
    plan: str
    predicted: float
    switch: float
    leaves: float
    deep: float


def simulated_ms(
    model: str, gbps: int, topology: dict[str, Any], all_reduce: str = "ring", **workload: Any
) -> tuple[float, str]:
    """(A minibatch in the steady state, what the workload says of itself)."""
    path = str(find(f"pipedream/{model}.txt"))
    rate = {} if "hosts" in topology else {"rate": f"{gbps}Gbps"}
    done = cosim.run(
        {
            "topology": {**topology, **rate},
            "network": "fair_share",
            "collectives": {"all_reduce": all_reduce},
            "jobs": [
                {
                    "iterations": 60,
                    "workload": {"kind": "layers", "file": path, "workers": WORKERS, **workload},
                }
            ],
        }
    )
    job = done.summary.jobs[0]
    return (job.iteration_mean_ps or 0) / job.minibatches / 1e9, job.read[-1]


def row(model: str, gbps: int) -> Row:
    """All of a model at a rate."""
    parallel = {"plan": "data_parallel"}
    synchronous, _ = simulated_ms(model, gbps, SWITCH, **parallel)
    stale, _ = simulated_ms(model, gbps, SWITCH, staleness=1, **parallel)
    _, said = simulated_ms(model, gbps, SWITCH, staleness="auto", rate=f"{gbps}Gbps", **parallel)
    fewest = said.split("the first ")[1].split(" layers")[0] if "the first" in said else "none"
    found = partition(read_graph(find(f"pipedream/{model}.txt")), [Level(WORKERS, gbps * 1e9)])
    stages = [{"layers": [one.first, one.last], "workers": one.workers} for one in found.plan.stages]
    switch, _ = simulated_ms(model, gbps, SWITCH, plan=stages)
    leaves, _ = simulated_ms(model, gbps, LEAVES, plan=stages)
    versions = StagePlan.versions.fget(found.plan)  # type: ignore[attr-defined]
    with mock.patch.object(StagePlan, "versions", tuple(one + DEEP for one in versions)):
        deep, _ = simulated_ms(model, gbps, SWITCH, plan=stages)
    name = "data parallel" if len(stages) == 1 else "-".join(str(one.workers) for one in found.plan.stages)
    return Row(model, gbps, synchronous, stale, fewest, name, 1e3 * found.minibatch_s, switch, leaves, deep)


CLUSTERS = ((4, 10, 5.28), (8, 25, 2.98))
"""GPUs of a machine of 16 GB/s, Gbps of its NIC, and VGG-16's speed there over data parallelism's."""
AT_THE_END = {"plan": "data_parallel", "local_sgd": {"steps": 1}}
BASELINES: dict[str, tuple[str, dict[str, Any]]] = {
    "layer by layer, ring": ("ring", {"plan": "data_parallel"}),
    "at the end, ring": ("ring", AT_THE_END),
    "at the end, each with each": ("direct", AT_THE_END),
}


def reported() -> None:
    """PipeDream's plan for VGG-16 over data parallelism, whose gradients are exchanged in several ways."""
    stages = [{"layers": [0, 33], "workers": 15}, {"layers": [33, 40], "workers": 1}]
    for gpus, gbps, theirs in CLUSTERS:
        hosts = {"gpus": gpus, "nvlink_rate": "16GB/s", "nics": 1, "nic_rate": f"{gbps}Gbps"}
        topology = {"kind": "leaf_spine", "leaves": 1, "spines": 1, "endpoints_per_leaf": WORKERS}
        topology |= {"latency": "1us", "hosts": hosts}
        plan, _ = simulated_ms("vgg16", gbps, topology, plan=stages)
        print(f"{WORKERS // gpus} x {gpus} at {gbps} Gbps: 15-1 takes {plan:.2f} ms; {theirs} x reported")
        for name, (algorithm, workload) in BASELINES.items():
            time, _ = simulated_ms("vgg16", gbps, topology, algorithm, **workload)
            print(f"  data parallel, {name:28}{time:8.2f} ms {time / plan:6.2f} x", flush=True)


def draw(rows: Sequence[Row], path: str) -> None:
    """Speed over synchronous data parallelism, by rate."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(MODELS), figsize=(9, 3), sharex=True, layout="constrained")
    for axis, model in zip(axes, MODELS, strict=True):
        mine = [one for one in rows if one.model == model]
        rates = [one.gbps for one in mine]
        for name, label, style in (("switch", "PipeDream's plan", "o-"), ("stale", "gradients late", "s--")):
            axis.plot(rates, [one.synchronous / getattr(one, name) for one in mine], style, label=label)
        axis.axhline(1, color="0.7", linewidth=1)
        axis.set(title=model, xscale="log", xlabel="Gbps", ylim=(0, None))
    axes[0].set_ylabel("times as fast as synchronous")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.asynchronous", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("models", nargs="*", default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--figure", metavar="FILE", help="draw it: png, svg")
    parser.add_argument("--reported", action="store_true", help="where PipeDream reports VGG-16")
    chosen = parser.parse_args(arguments)
    missing = absent(*(f"pipedream/{model}.txt" for model in chosen.models))
    if missing:
        raise SystemExit(missing)
    if chosen.reported:
        reported()
        return
    rows = []
    head = ("Gbps", "sync", "late", "fewest late", "plan", "predicted", "switch", "leaf-spine", "deep")
    print(f"{'model':9}" + "".join(f"{name:>13}" if k != 4 else f"{name:>32}" for k, name in enumerate(head)))
    for model in chosen.models:
        for gbps in RATES:
            try:
                one = row(model, gbps)
            except CosimError as error:
                print(f"{model:9}{gbps:13d}  {error}")
                continue
            rows.append(one)
            print(
                f"{one.model:9}{one.gbps:13d}{one.synchronous:13.2f}{one.stale:13.2f}{one.fewest:>13}"
                f"{one.plan:>32}{one.predicted:13.2f}{one.switch:13.2f}{one.leaves:13.2f}{one.deep:13.2f}",
                flush=True,
            )
    if chosen.figure:
        draw(rows, chosen.figure)


if __name__ == "__main__":
    main()
