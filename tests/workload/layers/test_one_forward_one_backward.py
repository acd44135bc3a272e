"""``1f1b_async`` beside PipeDream's static schedule: after as many forward passes as it keeps in flight, a
worker alternates (SOSP 2019, section 3.2), whoever waits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import cosim

MINIBATCHES = 60


def order_of(stage: int, stages: int) -> Iterator[tuple[str, int]]:
    """Passes of a stage, in the order in which it makes them."""
    flight = stages - stage
    for minibatch in range(min(flight, MINIBATCHES)):
        yield "forward", minibatch
    for minibatch in range(MINIBATCHES):
        yield "backward", minibatch
        if minibatch + flight < MINIBATCHES:
            yield "forward", minibatch + flight


def strict(forward: list[int], backward: list[int]) -> int:
    """When the first stage has ended its last backward pass, where nothing takes time but computation."""
    stages = len(forward)
    left = [[*order_of(stage, stages)][::-1] for stage in range(stages)]
    ends: dict[tuple[str, int, int], int] = {}
    free = [0] * stages
    while any(left):
        for stage in range(stages):
            while left[stage]:
                what, minibatch = left[stage][-1]
                before = (what, stage + (-1 if what == "forward" else 1), minibatch)
                if what == "backward" and stage == stages - 1:
                    before = ("forward", stage, minibatch)
                if 0 <= before[1] < stages and before not in ends:
                    break
                takes = forward[stage] if what == "forward" else backward[stage]
                free[stage] = max(free[stage], ends.get(before, 0)) + takes
                ends[what, stage, minibatch] = free[stage]
                left[stage].pop()
    return max(free)


def simulated(forward: list[int], backward: list[int]) -> int:
    layers = [
        {"forward": f"{f}us", "backward": f"{b}us", "activation": "1B", "parameters": "1B"}
        for f, b in zip(forward, backward, strict=True)
    ]
    workload: dict[str, Any] = {
        "kind": "layers", "workers": len(layers), "plan": "straight", "schedule": "1f1b_async",
        "layers": layers,
    }  # fmt: skip
    topology = {"kind": "switch", "endpoints": len(layers), "rate": "100Tbps", "latency": "0ns"}
    jobs = [{"iterations": MINIBATCHES, "workload": workload}]
    run = cosim.run({"topology": topology, "network": "congestion_unaware", "jobs": jobs})
    return round(run.records.end_ps / 10**6)


def compare(seeds: range) -> None:
    for seed in seeds:
        draw = random.Random(seed)
        stages = draw.randrange(2, 6)
        forward = [draw.randrange(1000, 20_000) for _ in range(stages)]
        backward = [draw.randrange(1000, 20_000) for _ in range(stages)]
        if draw.random() < 0.3:
            backward = [2 * one for one in forward]
        assert simulated(forward, backward) == pytest.approx(strict(forward, backward), rel=1e-3), seed


def test_two_stages_take_what_the_slower_takes() -> None:
    """The forward pass is 5 and 4 ms, the backward pass 14 and 10: an iteration is 19 ms."""
    found = simulated([5000, 4000], [14_000, 10_000])
    assert found == strict([5000, 4000], [14_000, 10_000]) == 60 * 19_000 + 9000


def test_random_pipelines_keep_the_static_schedule() -> None:
    compare(range(20))


@pytest.mark.slow
def test_400_random_pipelines_keep_the_static_schedule() -> None:
    compare(range(20, 420))


@pytest.mark.parametrize("workers", [(2, 13, 1), (1, 3, 1), (3, 1, 5), (1, 7, 2, 1)])
def test_replicated_stages_never_wait_for_each_other(workers: tuple[int, ...]) -> None:
    """A stage of many workers keeps more minibatches in flight than a narrow one before it admits."""
    layer = {"forward": "3ms", "backward": "5ms", "activation": "1kB", "parameters": "1kB"}
    plan = [{"layers": [k, k + 1], "workers": count} for k, count in enumerate(workers)]
    workload = {"kind": "layers", "workers": sum(workers), "plan": plan, "layers": [layer] * len(workers)}
    topology = {"kind": "switch", "endpoints": sum(workers), "rate": "100Tbps", "latency": "0ns"}
    jobs = [{"iterations": 6, "workload": workload}]
    run = cosim.run({"topology": topology, "network": "congestion_unaware", "jobs": jobs})
    assert run.records.iteration_end_ps[0].shape == (6, sum(workers))
