"""SAPipe and local SGD: the table of four layers, simulated; closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cosim
from cosim.units import PS_PER_MS
from cosim.workload.layers.staleness import fewest_stale, period_ps

MB = 10**6


def run(iterations: int = 12, network: str = "congestion_unaware", **workload: Any) -> Any:
    """On workers whose all-reduce of 1 MB over two takes 1 ms, whatever else goes on."""
    return cosim.run(
        {
            "topology": {"kind": "ring", "endpoints": 2, "rate": "8Gbps", "latency": "0ns"},
            "network": network,
            "jobs": [{"iterations": iterations, "workload": {"kind": "layers", "workers": 2, **workload}}],
        }
    )


def layers(*sync_ms: int) -> list[dict[str, Any]]:
    return [{"forward": "1ms", "backward": "2ms", "parameters": ms * MB} for ms in sync_ms]


def period_ms(done: Any) -> float:
    return float(done.summary.jobs[0].iteration_mean_ps) / PS_PER_MS


@pytest.mark.parametrize(
    ("sync", "expected"), [((2, 2, 2, 4), [16, 13, 12, 12, 12]), ((4, 4, 4, 6), [24, 19, 18, 18, 18])]
)
@pytest.mark.parametrize("stale", range(5))
def test_stale_layers_hide_what_is_synchronised_last(
    sync: tuple[int, ...], expected: list[int], stale: int
) -> None:
    done = run(plan="data_parallel", layers=layers(*sync), staleness={"first": stale})
    assert period_ms(done) == expected[stale]
    times = [ms * PS_PER_MS for ms in sync]
    assert period_ps([PS_PER_MS] * 4, [2 * PS_PER_MS] * 4, times, stale) == expected[stale] * PS_PER_MS


@pytest.mark.parametrize("sync", [(2, 2, 2, 4), (4, 4, 4, 6)])
def test_the_fewest_stale_layers_are_found(sync: tuple[int, ...]) -> None:
    done = run(plan="data_parallel", layers=layers(*sync), staleness="auto", rate="8Gbps")
    assert "staleness: the first 2 of 4 layers, up to layer 1, one iteration late" in str(
        done.summary.jobs[0].read
    )
    assert period_ms(done) == {2: 12, 4: 18}[sync[0]]


@pytest.mark.parametrize("order", ["queue", "priority"])
def test_what_is_predicted_is_simulated(order: Any) -> None:
    draw = np.random.default_rng(3)
    for _ in range(4):
        sync = draw.integers(0, 7, 5).tolist()
        for stale in (0, 2, 5):
            ms = [one * PS_PER_MS for one in sync]
            predicted = period_ps([PS_PER_MS] * 5, [2 * PS_PER_MS] * 5, ms, stale, order)
            done = run(
                40, plan="data_parallel", layers=layers(*sync), staleness={"first": stale}, order=order
            )
            assert period_ms(done) * PS_PER_MS == pytest.approx(predicted, rel=0.005)


def test_first_layers_first_need_no_staleness_where_a_step_is_long() -> None:
    times = [PS_PER_MS * ms for ms in (2, 2, 2, 4)]
    queue, priority = (
        period_ps([PS_PER_MS] * 4, [2 * PS_PER_MS] * 4, times, 0, order) for order in ("queue", "priority")
    )
    assert priority <= queue
    assert fewest_stale([1] * 4, [2] * 4, [0] * 4) == 0


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize(("compute", "average"), [(12, 10), (12, 60)])
def test_local_sgd_averages_every_so_many_steps(steps: int, compute: int, average: int) -> None:
    one = [{"forward": f"{compute // 3}ms", "backward": f"{2 * compute // 3}ms", "parameters": average * MB}]
    plain = run(plan="data_parallel", layers=one, local_sgd={"steps": steps})
    late = run(plan="data_parallel", layers=one, local_sgd={"steps": steps, "late": True})
    assert period_ms(plain) / steps == pytest.approx(compute + average / steps)
    assert period_ms(late) / steps == pytest.approx(max(compute, average / steps))


def test_predicting_weights_takes_a_copy_of_the_stale_ones() -> None:
    done = run(
        plan="data_parallel", layers=layers(2, 2, 2, 4), staleness={"first": 2}, memory_rate="8MB/s"
    )  # 4 MB read and written
    assert period_ms(done) == 12 + 1000
