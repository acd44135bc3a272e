"""What schedulers bring on a cluster like theirs: ``python -m tests.lab.benchmarks.schedulers``.

24 servers of 4 GPUs and one NIC of 50 Gbps, four below each of six leaves, 2:1 oversubscribed, DCQCN
(``--fluid``: ``fair_share``); jobs of four models of the catalogue come at random, queue, and are placed near
each other. Each way of sharing against none, seed by seed: means and 95 % confidence intervals (Student's t).
Then a GPT beside a BERT, as Crux's paper has them (section 2.2; alone: ``--pair``), and what it takes to
schedule 1,000 jobs on 1,024 hosts (alone: ``--many``).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

import numpy as np
from scipy import stats

import cosim
from cosim.cluster.arrange import Request, seats
from cosim.cluster.contract import I32, Queue
from cosim.cluster.locality import Local, domains
from cosim.cluster.schedulers.profile import JobProfile
from cosim.cluster.sharing import Cluster, Submitted
from cosim.context import HERE
from cosim.experiment.build import build
from cosim.experiment.simulate import simulate
from cosim.fabric.pinned import PinnedPaths
from cosim.registry import find
from cosim.results.measures import MEASURES
from cosim.topology.leaf_spine import LeafSpine

SEEDS = range(5)
MS = 10**9


def job(name: str, model: str, ranks: int, iterations: int, **more: Any) -> dict[str, Any]:
    """Six jobs that train a model data-parallel."""
    workload = {
        "kind": "model",
        "model": model,
        "gpu": "a100-80gb",
        "parallel": {"dp": ranks},
        "bucket": "4GB",
    }
    return {
        "name": name,
        "count": 6,
        "iterations": iterations,
        "workload": {**workload, **more},
        "arrival": {"kind": "poisson", "mean": "400ms"},
        "placement": "local",
    }


CLUSTER: dict[str, Any] = {
    "name": "cluster",
    "topology": {
        "kind": "leaf_spine",
        "leaves": 6,
        "spines": 2,
        "endpoints_per_leaf": 16,
        "hosts": {"gpus": 4, "nvlink_rate": "2400Gbps", "nics": 1, "nic_rate": "50Gbps"},
        "latency": "1us",
        "oversubscription": 2,
        "routing": "ecmp",
    },
    "network": {"model": "congestion", "control": "dcqcn"},
    "collectives": {"all_reduce": "ring"},
    "queue": {"backfill": True},
    "jobs": [
        job("vgg", "vgg-16", 12, 15, batch=1536, micro_batch=128),
        job("bert", "bert-large", 20, 8, batch=320, micro_batch=16),
        job("gpt", "gpt3-1.7b", 12, 4, batch=96, micro_batch=4),
        job("resnet", "resnet-50", 8, 40, batch=1024, micro_batch=128),
    ],
}
WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "cassini": {"scheduler": {"kind": "cassini", "candidates": 3}},
    "crux": {"scheduler": "crux"},
    "mltcp": {"network": {"model": "congestion", "control": {"kind": "mltcp", "over": "dcqcn"}}},
    "unfair weights": {"jobs[0].weight": 2, "jobs[2].weight": 2},
}
SHOWN = ("jct_mean", "jct_p99", "iteration", "gpu_utilisation", "marks")


def run(way: str, seed: int, fluid: bool) -> dict[str, float]:
    """Measures of one run; ``fluid``: on ``fair_share``, which has no marks."""
    network = {"network": "fair_share"} if fluid else {}
    scenario = cosim.Scenario(**CLUSTER).with_settings({**network, **WAYS[way], "seed": seed})
    summary = simulate(scenario, build(scenario)).summary
    return {name: MEASURES[name].of(summary, {}) for name in SHOWN if not (fluid and name == "marks")}


def study(fluid: bool) -> None:
    """A table of ways and measures, each over none."""
    shown = [name for name in SHOWN if not (fluid and name == "marks")]
    print(f"{'':16}{''.join(f'{name:>22}' for name in shown)}")
    found: dict[str, list[dict[str, float]]] = {}
    for way in WAYS:
        if fluid and way == "mltcp":
            continue
        found[way] = [run(way, seed, fluid) for seed in SEEDS]
        cells = [_mean(found, name) if way == "none" else _over_none(found, way, name) for name in shown]
        print(f"{way:16}{''.join(f'{cell:>22}' for cell in cells)}", flush=True)


def _mean(found: Mapping[str, list[dict[str, float]]], name: str) -> str:
    mean = float(np.mean([one[name] for one in found["none"]]))
    return f"{mean / 1e12:.3f} s" if MEASURES[name].kind == "time" else f"{mean:.4g}"


def _over_none(found: Mapping[str, list[dict[str, float]]], way: str, name: str) -> str:
    """``1.05 +- 0.02``: seed by seed none over it, where less is better, else it over none."""
    ratios = []
    for mine, none in zip(found[way], found["none"], strict=True):
        better, worse = (mine, none) if not MEASURES[name].less_is_better else (none, mine)
        ratios.append(better[name] / max(worse[name], 1.0 if name == "marks" else 1e-9))
    half = stats.t.ppf(0.975, len(ratios) - 1) * stats.sem(ratios)
    return f"{np.mean(ratios):.3g} x +- {half:.2g}"


def _on_pair(name: str, hosts: Sequence[int], gpus: int, **more: Any) -> dict[str, Any]:
    """A data-parallel job on the first GPUs of hosts of both switches, whose gradients go at the end."""
    ends = [48 * leaf + 8 * host + gpu for leaf in (0, 1) for host in hosts for gpu in range(gpus)]
    workload = {"kind": "model", "gpu": "a100-80gb", "parallel": {"dp": len(ends)}, "bucket": "4GB", **more}
    return {
        "name": name,
        "workload": workload,
        "placement": {"kind": "explicit", "endpoints": ends},
        "iterations": 10,
    }


PAIR: dict[str, Any] = {
    **{key: CLUSTER[key] for key in ("network", "collectives")},
    "name": "pair",
    "topology": {
        "kind": "leaf_spine",
        "leaves": 2,
        "spines": 1,
        "endpoints_per_leaf": 48,
        "hosts": {"gpus": 8, "nvlink_rate": "2400Gbps", "nics": 4, "nic_rate": "200Gbps"},
        "uplink_rate": "200Gbps",
        "latency": "1us",
    },
}
GPT = {"kind": "gpt3-175b", "layers": 24, "hidden": 1024, "heads": 16, "ffn": 4096}
ON_PAIR = (
    _on_pair("gpt", range(4), 8, model=GPT, batch=2560, micro_batch=4),
    _on_pair("bert", range(4, 6), 4, model="bert-large", batch=256, micro_batch=16),
)


def pair() -> None:
    """Mean iteration, without the first, of each of two jobs alone, and of both for as long as both run."""
    print(f"{'iteration':16}{'gpt':>22}{'bert':>22}")
    alone = [_pair_iterations([one], "none")[0] for one in ON_PAIR]
    longer = {**ON_PAIR[1], "iterations": int(2 * sum(alone[0]) / alone[1][-1])}
    rows = {"alone": alone}
    for way in ("none", "crux"):
        gpt, bert = _pair_iterations([ON_PAIR[0], longer], way)
        rows[f"both, {way}"] = [gpt, bert[: int(np.searchsorted(np.cumsum(bert), sum(gpt)))]]
    for name, times in rows.items():
        print(f"{name:16}{''.join(f'{np.mean(one[1:]) / 1e12:20.3f} s' for one in times)}")
    print(f"{'theirs, alone':16}{'1.53 s':>22}")
    print(f"{'theirs, both':16}{'1.70 s':>22}{'7.7 % fewer a second':>22}", flush=True)


def _pair_iterations(jobs: Sequence[dict[str, Any]], scheduler: str) -> list[list[int]]:
    scenario = cosim.Scenario(**PAIR, jobs=jobs).with_settings({"scheduler": scheduler})
    return [list(job.iteration_ps) for job in simulate(scenario, build(scenario)).summary.jobs]


def many(count: int = 1000, hosts: int = 1024) -> None:
    """CPU-seconds of all that is decided about jobs of 1 to 32 hosts that come at random, queue with
    backfill, are placed near each other, and leave: placements, and two decisions for each job.
    """
    leaf = {"endpoints_per_leaf": 32, "rate": "50Gbps", "latency": "1us", "oversubscription": 2}
    plain = LeafSpine.model_validate({"leaves": hosts // 32, "spines": 8, **leaf}).build(HERE)
    near = domains(plain)
    for name in ("cassini", "crux"):
        draw = np.random.default_rng(0)
        jobs = [_submitted(f"job{number}", draw) for number in range(count)]
        topology = replace(plain, routing=PinnedPaths(plain.routing))

        def candidates(job: int, free: I32, most: int, jobs: Sequence[Submitted] = jobs) -> list[I32]:
            request = Request(jobs[job].name, len(jobs[job].endpoints), Local())
            return seats(request, free, hosts, most, domains=near)

        cluster = Cluster(jobs, topology, Queue(backfill=True), find("cosim.schedulers", name)(), candidates)
        coming = np.cumsum(draw.exponential(1000 * MS, count)).astype(np.int64).tolist()
        events = [(at, 0, job) for job, at in enumerate(coming)]
        began = time.process_time()
        while events:
            now, leaves, job = heappop(events)
            for order in cluster.ended(job, now) if leaves else cluster.arrived([job], now):
                if order.endpoints is not None:
                    heappush(events, (now + int(draw.exponential(100_000 * MS)), 1, order.job))
        took = time.process_time() - began
        print(
            f"{name}: {count} jobs on {hosts} hosts, {cluster.num_decisions} decisions, in {took:.2f} CPU-s"
        )


def _submitted(name: str, draw: np.random.Generator) -> Submitted:
    """A job of a host or several, each of which sends 100 MB to the next for a third of an iteration."""
    ranks, period = int(draw.choice([1, 2, 4, 8, 16, 32])), int(draw.integers(100, 400)) * MS
    src = np.arange(ranks if ranks > 1 else 0, dtype=np.int32)
    times = np.zeros(len(src), np.int64), np.full(len(src), period // 3)
    size = np.full(len(src), 10**8)
    profile = JobProfile(ranks, period, ranks * period // 2, src, (src + 1) % ranks, size, *times)
    return Submitted(name, np.arange(ranks, dtype=np.int32), profile)


if __name__ == "__main__":
    began = time.process_time()
    only = {"--many", "--pair"}.intersection(sys.argv)
    if not only:
        study(fluid="--fluid" in sys.argv)
    if "--many" not in only:
        pair()
    if "--pair" not in only:
        many()
    print(f"{time.process_time() - began:.0f} CPU-s in all")
