"""Staleness and local SGD of a catalogue model against closed forms of what is computed and exchanged."""

from __future__ import annotations

from typing import Any

import pytest

import cosim
from cosim.context import HERE
from cosim.errors import InputError
from cosim.registry import find

WEIGHTS_BYTES = 553_430_176
"""VGG-16's 138,357,544 parameters of four bytes."""


def run(link: str = "5Gbps", parallel: dict[str, int] | None = None, **workload: Any) -> Any:
    cut = parallel if parallel is not None else {"dp": 4}
    return cosim.run(
        {
            "topology": {"kind": "switch", "endpoints": 4, "rate": link, "latency": "0ns"},
            "network": "fair_share",
            "collectives": {"all_reduce": "ring"},
            "jobs": [
                {
                    "iterations": 6,
                    "workload": {
                        "kind": "model", "model": "vgg-16", "gpu": "v100-sxm2", "dtype": "fp32",
                        "parallel": cut, "micro_batch": 32, **workload,
                    },
                }
            ],
        }
    )  # fmt: skip


def job(done: Any) -> Any:
    return done.summary.jobs[0]


def computed_ps(**workload: Any) -> int:
    """An iteration of a GPU alone, which exchanges nothing."""
    return int(job(run(parallel={"dp": 1}, **workload)).iteration_mean_ps)


def all_reduce_ps(rate_bps: float) -> float:
    """A ring's 2 (n - 1) / n of the bytes over each link."""
    return 2 * 3 / 4 * WEIGHTS_BYTES * 8 / rate_bps * 1e12


def test_stale_gradients_hide_behind_the_next_iteration() -> None:
    slow = job(run("2Gbps", staleness=1)).iteration_mean_ps
    assert slow == pytest.approx(all_reduce_ps(2e9), rel=1e-4)  # the exchange without a pause
    fast, waited = (job(run("100Gbps", staleness=late)).iteration_mean_ps for late in (1, 0))
    copy_ps = fast - computed_ps()  # 2 x 553 MB at 900 GB/s and some
    assert 1.2e9 < copy_ps < 2.5e9
    assert waited > computed_ps()


def test_first_layers_alone_may_be_late() -> None:
    """VGG-16's 13 convolutions have a tenth of the weights, exchanged last. Late, they fill the pause while
    the next iteration computes, and the exchange never stops; of fewer, some are waited for.
    """
    none, three, convolutions, whole = (
        job(run("2Gbps", staleness=late)).iteration_mean_ps
        for late in (0, {"first": 3}, {"first": 13}, {"first": 16})
    )
    assert convolutions == pytest.approx(all_reduce_ps(2e9), rel=1e-4)
    assert whole == job(run("2Gbps", staleness=1)).iteration_mean_ps
    assert none == three > 1.01 * convolutions  # the last bucket has more than three layers


@pytest.mark.parametrize("rate", ["2Gbps", "10Gbps"])
def test_as_few_layers_are_late_as_bring_what_all_would(rate: str) -> None:
    done = job(run(rate, staleness="auto", rate=rate))
    whole = job(run(rate, staleness=1)).iteration_mean_ps
    assert done.iteration_mean_ps <= whole * (1 + 1e-4)
    said = next(line for line in done.read if line.startswith("staleness: "))
    first = int(said.split("the first ")[1].split()[0])
    assert 0 < first < 16
    last = f"convolution {first - 1}" if first <= 13 else f"linear {first - 14}"  # VGG-16 has 13 and 3
    assert f"up to {last}," in said
    fewer = job(run(rate, staleness={"first": first - 1})).iteration_mean_ps
    assert fewer > whole * (1 + 1e-4)


def test_no_layer_is_late_where_that_brings_nothing() -> None:
    """At 100 Gbps the exchange hides behind the backward pass, and predicting weights takes time."""
    done = job(run("100Gbps", staleness="auto", rate="100Gbps"))
    assert done.iteration_mean_ps == job(run("100Gbps")).iteration_mean_ps
    assert "staleness: gradients of the first 0 layers" in str(done.read)


def test_stages_of_a_pipeline_have_their_own_first_layers() -> None:
    """Of four layers and embedding and head on two stages, three are half of the model: the first stage."""
    text = {
        "layers": 4, "hidden": 512, "heads": 8, "vocabulary": 1000, "sequence": 64,
        "gpu": "v100-sxm2", "dtype": "fp16", "data_parallel": 2, "pipeline_parallel": 2, "micro_batches": 2,
    }  # fmt: skip
    made = find("cosim.workloads", "transformer")(**text, staleness={"first": 3}).build(HERE)
    lags = [
        {dep for one in program.operations for dep, _ in one.lagged if program.operations[dep].collective}
        for program in made.programs
    ]
    gradients = [
        {at for at, one in enumerate(program.operations) if one.name.startswith("gradient bucket")}
        for program in made.programs
    ]
    assert lags[0] == gradients[0] != set()
    assert lags[1] == set() != gradients[1]


@pytest.mark.parametrize("late", [False, True])
def test_weights_are_averaged_every_so_many_steps(late: bool) -> None:
    done = job(run("1Gbps", local_sgd={"steps": 4, "late": late}))
    steps, average = 4 * computed_ps(), all_reduce_ps(1e9)
    expected = max(steps, average) if late else steps + average
    assert done.iteration_mean_ps == pytest.approx(expected, rel=1e-4)
    assert done.minibatches == 4


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"staleness": 1, "sharded_optimizer": True}, "staleness needs whole replicas"),
        ({"staleness": 1, "local_sgd": {"steps": 2}}, "no gradients for staleness"),
        (
            {"staleness": 1, "task": "prefill", "model": "bert-base", "dtype": "fp16"},
            "prefill has no gradients",
        ),
        ({"local_sgd": {"steps": 0}}, "local_sgd"),
        ({"staleness": 2}, "staleness"),
        ({"staleness": {"first": 17}}, "the first 17 of 16 layers"),
        ({"staleness": {"first": 2}, "sharded_optimizer": True}, "staleness needs whole replicas"),
        ({"staleness": {"last": 2}}, "staleness"),
        ({"staleness": "auto"}, "staleness: auto needs a rate"),
        (
            {
                "staleness": "auto",
                "rate": "1Gbps",
                "model": "gpt3-1.7b",
                "parallel": {"dp": 2, "pp": 2},
                "memory": "ignore",
            },
            "there are 2 pipeline stages",
        ),
    ],
)
def test_what_has_no_gradients_to_be_late_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(**settings)
