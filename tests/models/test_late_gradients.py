"""Staleness and local SGD of a catalogue model against closed forms of what is computed and exchanged."""

from __future__ import annotations

from typing import Any

import pytest

import cosim
from cosim.errors import InputError

WEIGHTS_BYTES = 553_430_176
"""VGG-16's 138,357,544 parameters of four bytes."""


def run(rate: str = "5Gbps", parallel: dict[str, int] | None = None, **workload: Any) -> Any:
    cut = parallel if parallel is not None else {"dp": 4}
    return cosim.run(
        {
            "topology": {"kind": "switch", "endpoints": 4, "rate": rate, "latency": "0ns"},
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
    ],
)
def test_what_has_no_gradients_to_be_late_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(**settings)
