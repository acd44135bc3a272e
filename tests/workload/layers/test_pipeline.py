"""Pipelines of stages: steady states, bubbles, memory; what is predicted, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import cosim
from cosim.errors import InputError
from cosim.units import PS_PER_MS

FAST = {"topology": {"kind": "switch", "endpoints": 8, "rate": "1000Tbps", "latency": "0ns"}}


def run(iterations: int = 12, **workload: Any) -> Any:
    return cosim.run(
        {
            **FAST,
            "network": "fair_share",
            "jobs": [{"iterations": iterations, "workload": {"kind": "layers", **workload}}],
        }
    )


def layers(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"forward": "1ms", "backward": "2ms", **more}] * count


def period_ms(done: Any) -> float:
    return float(done.summary.jobs[0].iteration_mean_ps) / PS_PER_MS


@pytest.mark.parametrize("stages", [1, 2, 4, 7])
def test_balanced_stages_take_a_minibatch_each_stage_time(stages: int) -> None:
    assert period_ms(run(20, workers=stages, plan="straight", layers=layers(stages))) == 3


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize(("stages", "micro"), [(2, 4), (4, 8), (4, 1)])
def test_flushed_pipelines_have_their_bubble(schedule: str, stages: int, micro: int) -> None:
    made = run(
        2, workers=stages, plan="straight", layers=layers(stages), schedule=schedule, minibatches=micro
    )
    assert period_ms(made) == 3 * (micro + stages - 1)


@pytest.mark.parametrize(("plan", "slowest"), [("2-1", 3), ("3-1", 2), ("1-2", 6)])
def test_replicas_share_a_stage(plan: str, slowest: float) -> None:
    """Two stages of computation 6 and 3: a minibatch takes what the slowest stage takes over its workers."""
    some = [{"forward": "2ms", "backward": "4ms"}, {"forward": "1ms", "backward": "2ms"}]
    first = int(plan[0])
    stages = [{"layers": [0, 1], "workers": first}, {"layers": [1, 2], "workers": int(plan[2])}]
    done = run(24, workers=sum(map(int, plan.split("-"))), plan=stages, layers=some)
    minibatches = {"2-1": 2, "3-1": 3, "1-2": 2}[plan]
    assert period_ms(done) / minibatches == pytest.approx(max(slowest, 3 / int(plan[2])), rel=0.02)


def test_gradients_are_exchanged_while_the_next_minibatches_compute() -> None:
    """Of 6 MB over two workers at 8 Gbps 6 ms, behind 9 ms of computation; of 20 MB it is the 20 ms."""
    for size, expected in ((6, 9), (20, 20)):
        some = [
            {"forward": "3ms", "backward": "6ms", "parameters": f"{size}MB"},
            {"forward": "1ms", "backward": "1ms"},
        ]
        done = cosim.run(
            {
                "topology": {"kind": "switch", "endpoints": 3, "rate": "8Gbps", "latency": "0ns"},
                "network": "fair_share",
                "jobs": [
                    {
                        "iterations": 20,
                        "workload": {
                            "kind": "layers", "workers": 3, "layers": some,
                            "plan": [{"layers": [0, 1], "workers": 2}, {"layers": [1, 2], "workers": 1}],
                        },
                    }
                ],
            }
        )  # fmt: skip
        assert period_ms(done) == pytest.approx(expected, rel=1e-6)


def test_the_page_says_versions_and_memory() -> None:
    done = run(workers=4, plan="straight", layers=layers(4, parameters="1MB", activation="1kB"))
    for stage, versions in enumerate((4, 3, 2, 1)):
        assert f"stage {stage}: layers [{stage}, {stage + 1}] on 1, {versions} versions of weights" in str(
            done.summary.jobs[0].read
        )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"plan": "straight", "iterations": 4}, "wait for 4 iterations before, but there are 4"),
        ({"plan": "data_parallel", "local_sgd": {"steps": 10**9}}, "local_sgd.steps"),
        ({"plan": "3-2"}, "its stages have 5 workers together, not 4"),
        ({"plan": "auto"}, "plan: auto needs a rate"),
        (
            {"plan": "straight", "minibatches": 3, "schedule": "1f1b", "workers": 4, "layers": layers(3)},
            "4 stages of 3",
        ),
        (
            {"plan": "2-2", "minibatches": 1, "schedule": "1f1b"},
            "1 minibatches don't go evenly over stages of 2, 2",
        ),
        ({"plan": "straight", "memory": "5MB"}, "worker of stage 0 needs 8 MB for 4 versions"),
        ({"plan": "straight", "staleness": 1}, "staleness is of data parallelism"),
        ({"plan": "data_parallel", "staleness": {"first": 9}}, "the first 9 of 4 layers"),
        ({"plan": "data_parallel", "staleness": "auto"}, "staleness: auto needs a rate"),
        ({"plan": "data_parallel", "staleness": 1, "local_sgd": {"steps": 2}}, "no gradients for staleness"),
        ({"plan": [{"layers": [0, 3], "workers": 2}, {"layers": [2, 4], "workers": 2}]}, "are in two stages"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(**{"workers": 4, "layers": layers(4, parameters="2MB"), **settings})


def test_settings_that_cannot_matter_are_told() -> None:
    work = {"kind": "layers", "workers": 4, "layers": layers(4), "plan": "data_parallel"}
    work |= {"rate": "10Gbps", "minibatches": 4, "memory_rate": "1GB/s"}
    done = cosim.run({**FAST, "network": "fair_share", "jobs": [{"iterations": 6, "workload": work}]})
    told = " ".join(done.summary.warnings)
    for name in ("rate", "minibatches", "memory_rate"):
        assert f"workload.{name}: has no effect" in told
